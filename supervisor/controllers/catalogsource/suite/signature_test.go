package suite_test

import (
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/onsi/gomega"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/controllers/catalogsource"
	"github.com/chandlery/chandlery/supervisor/explain"
	"github.com/chandlery/chandlery/test/signing"
)

// refusal returns the finding about a CatalogSource as `kubectl chandlery explain` shows it.
func refusal(source *operatorsv1alpha1.CatalogSource) string {
	state := &explain.ClusterState{CatalogSources: []operatorsv1alpha1.CatalogSource{*source}}
	for _, f := range explain.Object(state, explain.Ref{Kind: explain.KindCatalogSource, Namespace: source.Namespace, Name: source.Name}).Findings {
		if f.Code == explain.CodeImageRefused {
			return f.Cause
		}
	}
	return ""
}

// ofHeads makes a CatalogSource serve a part of its unchanged image.
func ofHeads(s *operatorsv1alpha1.CatalogSource) {
	s.Annotations = map[string]string{api.AnnotationCatalogFilter: `{"heads":true}`}
	s.Spec.GrpcPodConfig = &operatorsv1alpha1.GrpcPodConfig{ExtractContent: &operatorsv1alpha1.ExtractContentConfig{CatalogDir: "/configs"}}
}

// TestSignedCatalog has catalogs whose images need a signature: one of them gets new content that is not signed.
func TestSignedCatalog(t *testing.T) {
	w, registry := newWorld(t), newImages(t, "", "")
	key, err := signing.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	policy := t.TempDir()
	if err := key.WritePolicy(policy, registry.host); err != nil {
		t.Fatal(err)
	}
	sign := func(digest string) {
		t.Helper()
		image, err := name.NewDigest(registry.host+"/shop@"+digest, name.Insecure)
		if err == nil {
			err = key.Sign(t.Context(), image)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	_, first := registry.push("shop:1", nil)
	sign(first)
	_, unsigned := registry.push("shop:2", nil)
	w.Create(
		catalog("shop", registry.host+"/shop:1", polls("5s")), catalog("unsigned", registry.host+"/shop:2"),
		catalog("pinned", registry.host+"/shop@"+unsigned), catalog("part", registry.host+"/shop:1", ofHeads),
	)
	w.supervise(func(c *catalogsource.Config) { c.Registries.Config = policy })
	pinned := registry.host + "/shop@" + first
	w.rolledOut("shop", 2, runs(pinned))
	part := w.rolledOut("part", 2, serves("serve", gomega.HavePrefix("/extracted-catalog/"), `--selection={"heads":true}`))
	if got := part.Annotations[api.AnnotationImageDigest]; got != first {
		t.Errorf("a part of the catalog has image %s, want the signed %s", got, first)
	}
	for _, named := range []string{"unsigned", "pinned"} {
		w.becomes(named, func(g gomega.Gomega, s *operatorsv1alpha1.CatalogSource) {
			g.Expect(condition(s, "Progressing")).To(gomega.And(gomega.HavePrefix("False PolicyRefused "),
				gomega.ContainSubstring("it has no signature: neither a referrer nor tag sha256-"), gomega.ContainSubstring("verification.yaml, line 2) accepts key acme.pub"),
				gomega.HaveSuffix("it does not run before its signature is accepted; sign the image, or correct the rule for its signatures")))
			g.Expect(refusal(s)).To(gomega.ContainSubstring("the rule for prefix " + registry.host))
		})
		if err := w.Get(t.Context(), client.ObjectKey{Namespace: w.Namespace, Name: named}, &appsv1.Deployment{}); err == nil {
			t.Errorf("CatalogSource %s runs an image without the required signature", named)
		}
	}

	_, second := registry.push("shop:1", nil)
	w.becomes("shop", func(g gomega.Gomega, s *operatorsv1alpha1.CatalogSource) {
		g.Expect(condition(s, "Progressing")).To(gomega.And(gomega.HavePrefix("False PolicyRefused "), gomega.ContainSubstring("image "+pinned+" still runs")))
		g.Expect(condition(s, "Available")).To(gomega.HavePrefix("True ReplicasServe 2 of 2 replicas are ready"))
		g.Expect(refusal(s)).To(gomega.ContainSubstring("it has no signature"))
	})
	d := &appsv1.Deployment{}
	w.get(w, "shop", d)
	runs(pinned)(w, d)

	// Signed later, it rolls out without help.
	sign(second)
	w.rolledOut("shop", 2, runs(registry.host+"/shop@"+second))
	sign(unsigned)
	w.rolledOut("pinned", 2, runs(registry.host+"/shop@"+unsigned))
}
