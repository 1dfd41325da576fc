package imagesources

import (
	"os"
	"path/filepath"
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
		})
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
