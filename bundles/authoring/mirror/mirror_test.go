package mirror

import (
	"context"
	"io"
	"log"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/empty"
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
		got, err := Format(form, images(t), "m.example:5000/a/")
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: -want +got:\n%s", form, diff)
		}
	}
	if _, err := Format(Mapping, images(t), ""); err == nil {
		t.Error("a mapping needs a mirror")
	}
	if text, err := Format(JSON, images(t), ""); err != nil || !strings.Contains(text, `"kinds": [`) {
		t.Errorf("%s, %v", text, err)
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	host := server.Listener.Addr().String()
	tag, err := name.NewTag(host+"/library/x:1", name.Insecure)
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(tag, empty.Image); err != nil {
		t.Fatal(err)
	}
	client, err := image.New(image.Options{PlainHTTP: true, Attempts: 1})
	if err != nil {
		t.Fatal(err)
	}
	missing, err := Check(t.Context(), client, images(t), host)
	if err != nil {
		t.Fatal(err)
	}
	if len(missing) != 3 || missing[0].Image != "example.com/catalog:v1" || missing[0].Reason != image.ReasonNotFound {
		t.Errorf("got %+v", missing)
	}
	server.Close()
	if missing, err := Check(t.Context(), client, images(t), host); err != nil || len(missing) != 4 || missing[0].Reason != image.ReasonUnreachable {
		t.Errorf("a mirror that is gone: %+v, %v", missing, err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Check(ended, client, images(t), host); err == nil {
		t.Error("the context has ended")
	}
}
