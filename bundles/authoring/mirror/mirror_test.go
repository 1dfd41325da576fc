package mirror

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/operator-framework/operator-registry/alpha/declcfg"

	"github.com/chandlery/chandlery/bundles/authoring/render"
	"github.com/chandlery/chandlery/bundles/image"
)

const digest = "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

func images(t *testing.T) []Image {
	t.Helper()
	cfg := &declcfg.DeclarativeConfig{Bundles: []declcfg.Bundle{
		{Package: "p", Name: "p.v1", Image: "example.com/p@" + digest, RelatedImages: []declcfg.RelatedImage{
			{Image: "example.com/p@" + digest}, {Name: "x", Image: "docker.io/library/x:1"}, {Image: ""},
		}},
		{Package: "p", Name: "p.v2", Image: "example.com/p:2", RelatedImages: []declcfg.RelatedImage{{Image: "docker.io/library/x:1"}}},
	}}
	all, err := List(t.Context(), "example.com/catalog:v1", render.NewMemory(cfg))
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func mirrors(t *testing.T, values ...string) Mirrors {
	t.Helper()
	found, err := ParseMirrors(values)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestList(t *testing.T) {
	t.Parallel()
	want := []Image{
		{Reference: "docker.io/library/x:1", Kinds: []Kind{Related}, Bundles: []string{"p/p.v1", "p/p.v2"}},
		{Reference: "example.com/catalog:v1", Kinds: []Kind{Catalog}},
		{Reference: "example.com/p:2", Kinds: []Kind{Bundle}, Bundles: []string{"p/p.v2"}},
		{Reference: "example.com/p@" + digest, Kinds: []Kind{Bundle}, Bundles: []string{"p/p.v1"}},
	}
	if diff := cmp.Diff(want, images(t)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestFormat(t *testing.T) {
	t.Parallel()
	for form, want := range map[string]string{
		Lines:    "docker.io/library/x:1\nexample.com/catalog:v1\nexample.com/p:2\nexample.com/p@" + digest + "\n",
		Mapping:  "docker.io/library/x:1=m.example:5000/a/library/x:1\nexample.com/catalog:v1=m.example:5000/a/catalog:v1\nexample.com/p:2=m.example:5000/a/p:2\nexample.com/p@" + digest + "=m.example:5000/a/p@" + digest + "\n",
		Skopeo:   "docker.io:\n  images:\n    library/x:\n    - \"1\"\nexample.com:\n  images:\n    catalog:\n    - v1\n    p:\n    - \"2\"\n    - " + digest + "\n",
		OCMirror: "apiVersion: mirror.openshift.io/v2alpha1\nkind: ImageSetConfiguration\nmirror:\n  additionalImages:\n  - name: docker.io/library/x:1\n  - name: example.com/catalog:v1\n  - name: example.com/p:2\n  - name: example.com/p@" + digest + "\n",
	} {
		got, err := Format(form, images(t), mirrors(t, "m.example:5000/a/"))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: -want +got:\n%s", form, diff)
		}
	}
	if _, err := Format(Mapping, images(t), Mirrors{}); err == nil {
		t.Error("a mapping needs a mirror")
	}
	for _, values := range [][]string{{""}, {"=m"}, {"a="}, {"m", "n"}, {"a=m", "a=n"}} {
		if _, err := ParseMirrors(values); err == nil {
			t.Errorf("mirrors %q are accepted", values)
		}
	}
	if text, err := Format(JSON, images(t), Mirrors{}); err != nil || !strings.Contains(text, `"kinds": [`) {
		t.Errorf("%s, %v", text, err)
	}
}

var errOffline = errors.New("there is no network")

// TestCollisions has images of two registries with the same paths.
func TestCollisions(t *testing.T) {
	t.Parallel()
	at := func(references ...string) []Image {
		var all []Image
		for _, one := range references {
			all = append(all, Image{Reference: one})
		}
		return all
	}
	offline, err := image.New(image.Options{Attempts: 1, Sources: image.Sources{Proxy: func(*http.Request) (*url.URL, error) { return nil, errOffline }}})
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		reason  string
		images  []Image
		mirrors []string
		want    string
		fails   string
	}{
		"SameTag": {
			reason: "one would overwrite the other", images: at("a.example/team/x:v1", "b.example:5000/team/x:v1"), mirrors: []string{"m.example"},
			fails: "a.example/team/x:v1 and b.example:5000/team/x:v1 have the same place in the mirror, so one would overwrite the other; " +
				"add a mirror for one registry, such as b.example:5000=m.example/b.example-5000",
		},
		"Separate": {
			reason: "a registry has its own mirror", images: at("a.example/team/x:v1", "b.example:5000/team/x:v1"),
			mirrors: []string{"m.example", "b.example:5000=m.example/b.example-5000/"},
			want:    "a.example/team/x:v1=m.example/team/x:v1\nb.example:5000/team/x:v1=m.example/b.example-5000/team/x:v1\n",
		},
		"Nested": {
			reason: "a mirror below another one", images: at("a.example/b/x:v1", "b.example/x:v1"), mirrors: []string{"m.example", "b.example=m.example/b"},
			fails: "a.example/b/x:v1 and b.example/x:v1 have the same place",
		},
		"Unmirrored": {
			reason: "each registry needs a mirror", images: at("a.example/x:v1", "b.example/x:v1"), mirrors: []string{"a.example=m.example/a"},
			fails: "there is no mirror for its registry; add b.example=MIRROR",
		},
		"OneImage": {
			reason: "both name the same image", images: at("docker.io/library/x:latest", "x"), mirrors: []string{"m.example"},
			want: "docker.io/library/x:latest=m.example/library/x:latest\nx=m.example/library/x:latest\n",
		},
		"SameDigest": {
			reason: "the content is the same", images: at("a.example/x@"+digest, "b.example/x@"+digest), mirrors: []string{"m.example"},
			want: "a.example/x@" + digest + "=m.example/x@" + digest + "\nb.example/x@" + digest + "=m.example/x@" + digest + "\n",
		},
	} {
		got, err := Format(Mapping, tc.images, mirrors(t, tc.mirrors...))
		if got != tc.want || (err != nil) != (tc.fails != "") || err != nil && !strings.Contains(err.Error(), tc.fails) {
			t.Errorf("%s: %s: got %s, %v", name, tc.reason, got, err)
		}
		if tc.fails == "" {
			continue
		}
		if _, err := Check(t.Context(), offline, tc.images, mirrors(t, tc.mirrors...)); err == nil || !strings.Contains(err.Error(), tc.fails) {
			t.Errorf("%s: %s: the check gives %v", name, tc.reason, err)
		}
	}
}

// fakeRegistry returns the address of a registry with an image for each tag.
func fakeRegistry(t *testing.T, tags map[string]v1.Image) (*httptest.Server, string) {
	t.Helper()
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	host := server.Listener.Addr().String()
	for tag, img := range tags {
		ref, err := name.NewTag(host+"/"+tag, name.Insecure)
		if err != nil {
			t.Fatal(err)
		}
		if err := remote.Write(ref, img); err != nil {
			t.Fatal(err)
		}
	}
	return server, host
}

func TestCheck(t *testing.T) {
	t.Parallel()
	other, err := mutate.Config(empty.Image, v1.Config{User: "other"})
	if err != nil {
		t.Fatal(err)
	}
	source, from := fakeRegistry(t, map[string]v1.Image{"same:1": empty.Image, "moved:1": other, "lacking:1": other})
	mirror, host := fakeRegistry(t, map[string]v1.Image{"same:1": empty.Image, "moved:1": empty.Image})
	client, err := image.New(image.Options{PlainHTTP: true, Attempts: 1})
	if err != nil {
		t.Fatal(err)
	}
	var all []Image
	for _, tag := range []string{"lacking:1", "moved:1", "same:1", "same@" + digest} {
		all = append(all, Image{Reference: from + "/" + tag})
	}
	check := func(want ...string) *Result {
		t.Helper()
		result, err := Check(t.Context(), client, all, mirrors(t, host))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, m := range result.Missing {
			got = append(got, fmt.Sprintf("%s %s %t", strings.TrimPrefix(m.Image, from+"/"), m.Reason, m.Different != nil))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
		return result
	}
	if result := check("lacking:1 NotFound false", "moved:1  true", "same@"+digest+" NotFound false"); result.Uncompared != 0 {
		t.Errorf("not compared: %v", result.Err)
	}
	source.Close()
	result := check("lacking:1 NotFound false", "same@"+digest+" NotFound false")
	if result.Uncompared != 2 || image.ReasonOf(result.Err) != image.ReasonUnreachable {
		t.Errorf("a source that is gone: %d tags are not compared: %v", result.Uncompared, result.Err)
	}
	mirror.Close()
	check("lacking:1 Unreachable false", "moved:1 Unreachable false", "same:1 Unreachable false", "same@"+digest+" Unreachable false")
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Check(ended, client, all, mirrors(t, host)); err == nil {
		t.Error("the context has ended")
	}
}
