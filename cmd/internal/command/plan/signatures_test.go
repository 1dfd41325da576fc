package plan

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/chandlery/chandlery/cmd/internal/console"
	"github.com/chandlery/chandlery/supervisor/dryrun"
	"github.com/chandlery/chandlery/supervisor/dryrun/imagecheck"
	"github.com/chandlery/chandlery/supervisor/resolution"
	"github.com/chandlery/chandlery/test/images"
	"github.com/chandlery/chandlery/test/signing"
)

// signedBundle is the image of a bundle in a mirror, and the key of the policy for it.
type signedBundle struct {
	*testing.T

	mirror string
	digest name.Digest
	key    *signing.Key
	public string
}

func newSignedBundle(t *testing.T) *signedBundle {
	t.Helper()
	server := httptest.NewServer(registry.New(registry.Logger(slog.NewLogLogger(slog.DiscardHandler, slog.LevelInfo)), registry.WithReferrersSupport(true)))
	t.Cleanup(server.Close)
	s := &signedBundle{T: t, mirror: server.Listener.Addr().String()}
	bundle, err := images.Bundle(fstest.MapFS{
		"manifests/csv.json":        {Data: []byte(`{"apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion", "metadata": {"name": "lamp.v1"}}`)},
		"metadata/annotations.yaml": {Data: []byte("annotations: {operators.operatorframework.io.bundle.package.v1: lamp}")},
	})
	if err != nil {
		t.Fatal(err)
	}
	hash, err := images.Push(t.Context(), s.mirror+"/acme/bundle:1", bundle)
	if err != nil {
		t.Fatal(err)
	}
	if s.digest, err = name.NewDigest(s.mirror+"/acme/bundle@"+hash.String(), name.Insecure); err != nil {
		t.Fatal(err)
	}
	if s.key, err = signing.NewKey(); err != nil {
		t.Fatal(err)
	}
	public, err := s.key.PEM()
	if err != nil {
		t.Fatal(err)
	}
	s.public = string(public)
	return s
}

// bundleImage is the image of the bundle in the catalog.
func bundleImage() []dryrun.Image {
	return []dryrun.Image{{Reference: "source.test/acme/bundle:1", Catalog: "olm/wares", Kinds: []dryrun.ImageKind{dryrun.BundleImage}, Bundles: []string{"lamp.v1"}}}
}

// reader returns a cluster with rules of the supervisor and of the catalog; empty for none.
func (s *signedBundle) reader(rules, own string) client.WithWatch {
	s.Helper()
	objects := cluster("olm", s.mirror)
	settings, ok := objects[1].(*corev1.ConfigMap)
	if !ok {
		s.Fatalf("found %T", objects[1])
	}
	if rules != "" {
		settings.Data["verification.yaml"], settings.Data["acme.pub"] = rules, s.public
	}
	objects = append(objects, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "olm", Name: "own"}, Data: map[string]string{"verification.yaml": own}})
	return fake.NewClientBuilder().WithObjects(objects...).Build()
}

// check checks the bundle. The catalog names its rules in an annotation, if it has any.
func (s *signedBundle) check(reader client.Reader, hasOwn bool) (dryrun.Image, error) {
	s.Helper()
	p, _, err := newClusterPull(s.Context(), reader, "olm")
	if err != nil {
		s.Fatal(err)
	}
	p.source = func(resolution.CatalogKey) *operatorsv1alpha1.CatalogSource {
		source := &operatorsv1alpha1.CatalogSource{}
		if hasOwn {
			source.Annotations = map[string]string{"chandlery.dev/image-verify": "own"}
		}
		return source
	}
	found, err := imagecheck.Check(s.Context(), p.options, p.verify, bundleImage())
	if err != nil {
		return dryrun.Image{}, err
	}
	return found[0], nil
}

// TestSignaturesOfBundles checks the image of a bundle by the rules of the supervisor and of the catalog.
func TestSignaturesOfBundles(t *testing.T) {
	s := newSignedBundle(t)
	const required, fromSettings = "rules:\n- prefix: source.test/acme\n  keys: [acme.pub]", "the rule for prefix source.test/acme (ConfigMap olm/mirrors key verification.yaml, line 2)"
	for _, tt := range []struct {
		reason, rules, own string
		want               string // the reason of the answer; empty if the image is available
		message            string
		sign               bool
	}{
		{reason: "no rules"},
		{reason: "not signed", rules: required, want: "PolicyRefused", message: fromSettings + " accepts key acme.pub"},
		{reason: "forbidden", rules: "rules:\n- prefix: source.test/acme\n  require: reject", want: "PolicyRefused", message: "it is not allowed by " + fromSettings},
		{reason: "only for nodes", rules: "rules:\n- prefix: source.test/acme\n  require: node", want: "unchecked", message: "only nodes may pull it by " + fromSettings},
		{reason: "invalid rules", rules: "rules: [", want: "BadRegistriesConfiguration", message: "ConfigMap olm/mirrors key verification.yaml"},
		{reason: "another prefix", rules: "rules:\n- prefix: source.test/other\n  require: reject"},
		{reason: "signed", rules: required, sign: true},
		{reason: "signed, but refused by the catalog", rules: required, own: "rules:\n- prefix: source.test\n  require: reject", want: "PolicyRefused", message: "(ConfigMap olm/own key verification.yaml, line 2)"},
	} {
		if tt.sign {
			if err := s.key.Sign(t.Context(), s.digest); err != nil {
				t.Fatal(err)
			}
		}
		found, err := s.check(s.reader(tt.rules, tt.own), tt.own != "")
		if err != nil {
			t.Fatalf("%s: %v", tt.reason, err)
		}
		reason, message := "unchecked", found.NotChecked
		if found.Check != nil {
			reason, message = found.Check.Reason, found.Check.Message
		}
		if reason != tt.want || !strings.Contains(message, tt.message) {
			t.Errorf("%s: got %+v, %+v, want %q with %q", tt.reason, found, found.Check, tt.want, tt.message)
		}
		if reason == "PolicyRefused" && found.Check.Remedy != "sign the image, or correct the rule" {
			t.Errorf("%s: the remedy is %q", tt.reason, found.Check.Remedy)
		}
	}
}

// TestForbiddenRules checks the exit code and the remedy for users who may not read the rules of a catalog.
func TestForbiddenRules(t *testing.T) {
	s := newSignedBundle(t)
	reader := interceptor.NewClient(s.reader("", ""), interceptor.Funcs{
		Get: func(ctx context.Context, inner client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			if key.Name == "own" {
				return apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, key.Name, errors.New("no rule permits it"))
			}
			return inner.Get(ctx, key, object, options...)
		},
	})
	_, err := s.check(reader, true)
	err = explained(err)
	if code := console.Report(io.Discard, "chandlery", err); code != console.Forbidden || !strings.Contains(err.Error(), "reading ConfigMap olm/own") {
		t.Errorf("code %d, error %v", code, err)
	}
}

// TestSignaturesByFlags checks the image of a bundle by the rules in a directory.
func TestSignaturesByFlags(t *testing.T) {
	s := newSignedBundle(t)
	dir := t.TempDir()
	if err := s.key.WritePolicy(dir, s.mirror); err != nil {
		t.Fatal(err)
	}
	var o imageOptions
	flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
	o.addFlags(flags)
	if err := flags.Parse([]string{"--use-http", "--image-config", dir}); err != nil {
		t.Fatal(err)
	}
	wanted := bundleImage()
	wanted[0].Reference = s.mirror + "/acme/bundle:1"
	found, err := o.checkedByFlags(t.Context(), wanted)
	if err != nil {
		t.Fatal(err)
	}
	if check := found[0].Check; check.Reason != "PolicyRefused" || !strings.Contains(check.Message, dir+" key verification.yaml, line 2") {
		t.Errorf("not signed: %+v", check)
	}
	if err := s.key.Sign(t.Context(), s.digest); err != nil {
		t.Fatal(err)
	}
	if found, err := o.checkedByFlags(t.Context(), wanted); err != nil || !found[0].Check.Available {
		t.Errorf("signed: %+v, %v", found, err)
	}
}
