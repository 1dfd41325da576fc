package suite_test

import (
	"strings"
	"testing"

	imagename "github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/explain"
	"github.com/chandlery/chandlery/test/signing"
)

// TestUnsignedBundle offers an update whose image lacks a required signature. Its plan and its Subscription say so until
// the image is signed.
func TestUnsignedBundle(t *testing.T) {
	w := newWorld(t)
	images := newBlockedRegistry(t, "")
	ref, err := imagename.ParseReference(images.reference, imagename.Insecure)
	if err != nil {
		t.Fatal(err)
	}
	key, err := signing.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	w.pulls.policy = t.TempDir()
	if err := key.WritePolicy(w.pulls.policy, ref.Context().RegistryStr()); err != nil {
		t.Fatal(err)
	}
	update := w.lamp(2)
	img := bundleImage(t, update.Channels[0].Entries[1].Objects[0])
	if err := remote.Write(ref, img); err != nil {
		t.Fatal(err)
	}
	update.Channels[0].Entries[1].Image, update.Channels[0].Entries[1].Objects = images.reference, nil
	w.server.Serve(w.lamp(1))
	w.Create(w.subscription("my-lamp", "lamp"))
	w.supervise()
	w.succeed("lamp.v1")

	w.server.Serve(update)
	w.says("my-lamp", unpacked, "BundleUnpackFailed", "Bundle unpacking failed - PolicyRefused: bundle lamp.v2: ")
	sub := w.says("my-lamp", api.ConditionBlocked, api.ReasonPolicyRefused, "sign the image, or correct the rule for its signatures; the supervisor retries")
	if message := sub.Status.GetCondition(unpacked).Message; !strings.Contains(message, "it has no signature: neither a referrer nor tag sha256-") ||
		!strings.Contains(message, "verification.yaml, line 2) accepts key acme.pub (SHA-256 ") {
		t.Errorf("the message names neither rule nor key: %s", message)
	}
	state := &explain.ClusterState{Subscriptions: []operatorsv1alpha1.Subscription{*sub}}
	for _, p := range w.plans() {
		state.InstallPlans = append(state.InstallPlans, p)
		for _, lookup := range p.Status.BundleLookups {
			if failed := lookup.GetCondition(operatorsv1alpha1.BundleLookupFailed); failed.Reason != api.ReasonPolicyRefused {
				t.Errorf("the lookup of %s has %+v", lookup.Path, failed)
			}
		}
	}
	found := explain.Object(state, explain.Ref{Kind: explain.KindSubscription, Namespace: w.Namespace, Name: "my-lamp"})
	refused := false
	for _, f := range found.Findings {
		refused = refused || f.Code == explain.CodeImageRefused && strings.Contains(f.Cause, "it has no signature") && strings.HasPrefix(f.Remedy, "Sign the image")
	}
	if !refused {
		t.Errorf("the refused image is not explained: %+v", found.Findings)
	}

	digest, err := img.Digest()
	if err != nil {
		t.Fatal(err)
	}
	if err := key.Sign(t.Context(), ref.Context().Digest(digest.String())); err != nil {
		t.Fatal(err)
	}
	w.succeed("lamp.v2")
}
