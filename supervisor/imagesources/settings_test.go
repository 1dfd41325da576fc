package imagesources

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/chandlery/chandlery/bundles/image"
	"github.com/chandlery/chandlery/bundles/image/sources"
	"github.com/chandlery/chandlery/test/certificates"
)

const blocking = "[[registry]]\nlocation = \"source.test\"\nblocked = true\n"

// TestCheck checks what is reported while files change, step by step.
func TestCheck(t *testing.T) {
	dir := t.TempDir()
	s := New(sources.Paths{Config: dir}, nil)
	ref, err := name.ParseReference("source.test/a:v1")
	if err != nil {
		t.Fatal(err)
	}
	for i, step := range []struct {
		reason, text string
		problem      string
		asked        int
		changed      bool
	}{
		{reason: "invalid from the start", text: "[[registry", problem: "invalid, so that no images are pulled", asked: -1, changed: true},
		{reason: "still invalid", text: "[[registry", problem: "line 1", asked: -1},
		{reason: "valid", text: blocking, changed: true},
		{reason: "a typing error", text: blocking + "block = true\n", problem: `line 4: unknown key "registry.block"`, changed: true},
		{reason: "another error", text: "a", problem: "the last valid ones stay in use", changed: true},
		{reason: "valid again", text: "", asked: 1, changed: true},
	} {
		if err := os.WriteFile(filepath.Join(dir, "registries.conf"), []byte(step.text), 0o600); err != nil {
			t.Fatal(err)
		}
		s.Check(t.Context())
		if got := s.Problem(); !strings.Contains(got, step.problem) || (got == "") != (step.problem == "") {
			t.Errorf("%d: %s: problem %q", i, step.reason, got)
		}
		changed := false
		select {
		case <-s.Changes():
			changed = true
		default:
		}
		valid := testutil.ToFloat64(settingsValid) == 1
		if changed != step.changed || valid != (step.problem == "") {
			t.Errorf("%d: %s: changed %v, valid %v", i, step.reason, changed, valid)
		}
		route, err := s.Route(ref)
		if asked := len(route.Sources); err != nil && step.asked >= 0 || err == nil && asked != step.asked {
			t.Errorf("%d: %s: %d sources, %v", i, step.reason, asked, err)
		}
	}
}

// TestIdentity checks that rights end with the Secrets and the rules that gave them.
func TestIdentity(t *testing.T) {
	secret := func(namespace, called, host string) client.Object {
		return &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: called, UID: types.UID(called)}, Type: corev1.SecretTypeDockerConfigJson,
			Data: map[string][]byte{corev1.DockerConfigJsonKey: []byte(`{"auths":{"` + host + `":{"username":"a","password":"b"}}}`)},
		}
	}
	reader := fake.NewClientBuilder().WithObjects(secret("olm", "own", "source.test"), secret("shared", "mirrors", "mirror.test")).Build()
	dir := t.TempDir()
	identity := func(shared []types.NamespacedName, text string, secrets ...string) string {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, "registries.conf"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		access, err := New(sources.Paths{Config: dir}, shared).Access(t.Context(), reader, &Catalog{
			NamespacedName: types.NamespacedName{Namespace: "olm", Name: "shop"}, Account: "shop", Secrets: secrets,
		}, "source.test/a:v1")
		if err != nil {
			t.Fatal(err)
		}
		ref, err := name.ParseReference("source.test/a:v1")
		if err != nil {
			t.Fatal(err)
		}
		found, err := access.Identity(ref)
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	mirrors := []types.NamespacedName{{Namespace: "shared", Name: "mirrors"}}
	mirrored := "[[registry]]\nlocation = \"source.test\"\n[[registry.mirror]]\nlocation = \"mirror.test/m\"\n"
	for reason, texts := range map[string][2]string{
		"no credentials":              {identity(nil, ""), "anonymous"},
		"of another registry":         {identity(mirrors, ""), "anonymous"},
		"of the catalog":              {identity(mirrors, "", "own"), "olm/own@own:999"},
		"of a mirror, by a rule":      {identity(mirrors, mirrored), "shared/mirrors@mirrors:999 via mirror.test/m/a via source.test/a"},
		"of both":                     {identity(mirrors, mirrored, "own"), "olm/own@own:999 shared/mirrors@mirrors:999 via mirror.test/m/a via source.test/a"},
		"a mirror without its Secret": {identity(nil, mirrored), "anonymous via mirror.test/m/a via source.test/a"},
	} {
		if texts[0] != texts[1] {
			t.Errorf("%s: got %q, want %q", reason, texts[0], texts[1])
		}
	}
}

func TestNoSettings(t *testing.T) {
	s := New(sources.Paths{}, nil)
	s.Check(t.Context())
	ref, err := name.ParseReference("source.test/a:v1")
	if err != nil {
		t.Fatal(err)
	}
	if route, err := s.Route(ref); err != nil || len(route.Sources) != 1 || s.Problem() != "" {
		t.Errorf("got %+v, %v, problem %q", route, err, s.Problem())
	}
	missing := New(sources.Paths{CA: filepath.Join(t.TempDir(), "none")}, nil)
	access := &Access{Sources: image.Sources{Router: missing}}
	if _, err := access.Identity(ref); image.ReasonOf(err) != image.ReasonConfiguration {
		t.Errorf("got %v", err)
	}
}

// TestOwnRules checks that the rules of a catalog come first, and do not lead to what the cluster blocks.
func TestOwnRules(t *testing.T) {
	dir := t.TempDir()
	text := blocking + "[[registry]]\nlocation = \"free.test\"\n[[registry.mirror]]\nlocation = \"mirror.test\"\n"
	if err := os.WriteFile(filepath.Join(dir, "registries.conf"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	config := func(version, text string) *corev1.ConfigMap {
		return &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "rules", UID: "1", ResourceVersion: version}, Data: map[string]string{"registries.conf": text},
		}
	}
	own := func(location string) string {
		return fmt.Sprintf("[[registry]]\nlocation = %q\n[[registry.mirror]]\nlocation = \"own.test\"\n", location)
	}
	s := New(sources.Paths{Config: dir}, nil)
	catalog := &Catalog{NamespacedName: types.NamespacedName{Namespace: "team", Name: "shop"}, Config: "rules"}
	for i, step := range []struct {
		reason, text   string
		image, want    string
		problem        string
		fails, missing bool
	}{
		{reason: "a ConfigMap is missing", image: "free.test/a:v1", missing: true, fails: true, problem: "no images of the catalog are pulled"},
		{reason: "it is invalid", text: "a", image: "free.test/a:v1", fails: true, problem: "key registries.conf"},
		{reason: "its rules come first", text: own("free.test"), image: "free.test/a:v1", want: "own.test free.test"},
		{reason: "a typing error", text: "a", image: "free.test/a:v1", want: "own.test free.test", problem: "the last valid ones stay in use"},
		{reason: "what the cluster blocks stays blocked", text: own("source.test"), image: "source.test/a:v1", want: "own.test"},
		{reason: "the cluster's rules for other images", text: own("source.test"), image: "free.test/a:v1", want: "mirror.test free.test"},
	} {
		builder := fake.NewClientBuilder()
		if !step.missing {
			builder = builder.WithObjects(config(strconv.Itoa(i), step.text))
		}
		reader := builder.Build()
		if got := s.CatalogProblem(t.Context(), reader, catalog); !strings.Contains(got, step.problem) || (got == "") != (step.problem == "") {
			t.Errorf("%d: %s: problem %q", i, step.reason, got)
		}
		access, err := s.Access(t.Context(), reader, catalog, step.image)
		if err != nil || step.fails {
			if !step.fails || image.ReasonOf(err) != image.ReasonConfiguration {
				t.Errorf("%d: %s: got %v", i, step.reason, err)
			}
			continue
		}
		if got := asked(t, access.Sources.Router, step.image); got != step.want {
			t.Errorf("%d: %s: asked %q, want %q", i, step.reason, got, step.want)
		}
	}
}

// TestOwnRulesAndClientCertificates checks that the rules of a catalog cannot lead the supervisor to a registry with the
// client certificate of the cluster, whose authorities stay trusted.
func TestOwnRulesAndClientCertificates(t *testing.T) {
	ca := certificates.NewAuthority(t, "cluster")
	pair := ca.Sign(t, certificates.Request{})
	dir := t.TempDir()
	for key, text := range map[string][]byte{
		"own.test": ca.PEM, "own.test.cert": pair.Certificate, "own.test.key": pair.Key,
		"free.test.cert": pair.Certificate, "free.test.key": pair.Key,
	} {
		if err := os.WriteFile(filepath.Join(dir, key), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	rules := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "rules"},
		Data:       map[string]string{"registries.conf": "[[registry]]\nlocation = \"source.test\"\n[[registry.mirror]]\nlocation = \"own.test\"\n"},
	}
	s := New(sources.Paths{Config: dir}, nil)
	catalog := &Catalog{NamespacedName: types.NamespacedName{Namespace: "team", Name: "shop"}, Config: "rules"}
	first := func(reference string) image.Source {
		access, err := s.Access(t.Context(), fake.NewClientBuilder().WithObjects(rules).Build(), catalog, reference)
		if err != nil {
			t.Fatal(err)
		}
		route, err := routeOf(t, access.Sources.Router, reference)
		if err != nil {
			t.Fatal(err)
		}
		return route.Sources[0]
	}
	if mirror := first("source.test/a:v1"); len(mirror.Certificates) != 0 || len(mirror.RootCAs) != 1 {
		t.Errorf("a mirror of the catalog has %d client certificates and %d authorities", len(mirror.Certificates), len(mirror.RootCAs))
	}
	if other := first("free.test/a:v1"); len(other.Certificates) != 1 {
		t.Errorf("without a rule of the catalog, there are %d client certificates", len(other.Certificates))
	}
}
