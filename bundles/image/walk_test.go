package image

import (
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
)

// mirrored routes all images to registries, in their order.
type mirrored []*fakeRegistry

func (m mirrored) Route(ref name.Reference) (Route, error) {
	var route Route
	_, rest, _ := strings.Cut(ref.Name(), "/")
	for _, r := range m {
		at, err := name.ParseReference(r.host() + "/" + rest)
		if err != nil {
			return Route{}, err
		}
		route.Sources = append(route.Sources, Source{Reference: at, Rule: "test", Endpoint: Endpoint{PlainHTTP: true}})
	}
	return route, nil
}

// nonsense are answers of servers that lack the image.
func nonsense(t *testing.T) map[string]http.HandlerFunc {
	t.Helper()
	const tooMany = 20 << 20
	send := func(kind, text string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", kind)
			_, _ = w.Write([]byte(text))
		}
	}
	foreign := mutate.AppendManifests(empty.Index, mutate.IndexAddendum{
		Add: simple(t, "foreign"), Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "plan9", Architecture: "s390x"}},
	})
	index, err := foreign.RawManifest()
	if err != nil {
		t.Fatal(err)
	}
	return map[string]http.HandlerFunc{
		"Announced": func(w http.ResponseWriter, request *http.Request) {
			w.Header().Set("Content-Length", strconv.Itoa(tooMany))
			send("application/vnd.oci.image.manifest.v1+json", strings.Repeat(" ", tooMany))(w, request)
		},
		"Sent": func(w http.ResponseWriter, request *http.Request) {
			w.WriteHeader(http.StatusOK)
			w.(http.Flusher).Flush()
			send("", strings.Repeat(" ", tooMany))(w, request)
		},
		"NoManifest":    send("application/json", `{"hello":"world"}`),
		"NoJSON":        send("text/plain", "hello"),
		"OtherPlatform": send("application/vnd.oci.image.index.v1+json", string(index)),
	}
}

// TestNonsenseMirror has a mirror whose answers are not the image. The source after it must be asked.
func TestNonsenseMirror(t *testing.T) {
	for what, answer := range nonsense(t) {
		t.Run(what, func(t *testing.T) {
			mirror, source := serve(t, (*httptest.Server).Start), serve(t, (*httptest.Server).Start)
			img := simple(t, "1")
			digest, err := img.Digest()
			if err != nil {
				t.Fatal(err)
			}
			reference := source.push(t, "team/catalog:v1", img)
			mirror.answer(func(w http.ResponseWriter, request *http.Request) bool {
				isManifest := strings.Contains(request.URL.Path, "/manifests/")
				if isManifest && request.Method == http.MethodHead {
					w.WriteHeader(http.StatusNotFound)
				} else if isManifest {
					answer(w, request)
				}
				return isManifest
			})
			c := client(t, func(o *Options) {
				o.Sources.Router, o.Platform, o.Attempts = mirrored{mirror, source}, "linux/amd64", 1
			})
			for _, one := range []string{reference, source.host() + "/team/catalog@" + digest.String()} {
				to := newPulled(t)
				if _, err := c.Extract(t.Context(), one, Catalog(), to.dir, to.scratch); err != nil || to.files(t)["c"] != "1" {
					t.Errorf("%s: got %v, %v", one, to.files(t), err)
				}
				if _, err := c.Labels(t.Context(), one); err != nil {
					t.Errorf("labels of %s: %v", one, err)
				}
			}
			if what == "OtherPlatform" {
				return
			}
			_, err = c.Labels(t.Context(), source.host()+"/nowhere:v1")
			expect(t, "the source does not have it", err, source.host()+"/nowhere:v1", ReasonNotFound, mirror.host())
			source.Close()
			_, err = c.Labels(t.Context(), reference)
			expect(t, "the source is away", err, reference, ReasonUnreachable, mirror.host())
			if typed, ok := err.(*Error); !ok || !typed.MayPass() || !IsAway(err) { //nolint:errorlint // the very type is promised
				t.Errorf("the source may come back: %v", err)
			}
		})
	}
}

// TestVerifiedContentEndsThePull has a mirror with the image, which no source can have in a better form.
func TestVerifiedContentEndsThePull(t *testing.T) {
	mirror, source := serve(t, (*httptest.Server).Start), serve(t, (*httptest.Server).Start)
	img := simple(t, "1")
	digest, err := img.Digest()
	if err != nil {
		t.Fatal(err)
	}
	mirror.push(t, "catalog:v1", img)
	reference := source.push(t, "catalog:v1", img)
	source.answer(func(_ http.ResponseWriter, request *http.Request) bool {
		t.Errorf("the source is asked: %s %s", request.Method, request.URL.Path)
		return false
	})
	to := newPulled(t)
	c := client(t, func(o *Options) { o.Sources.Router, o.Limits.MaxLayerBytes = mirrored{mirror, source}, 1 })
	_, err = c.Extract(t.Context(), reference, Catalog(), to.dir, to.scratch)
	at := source.host() + "/catalog@" + digest.String()
	expect(t, "a limit is exceeded", err, at, ReasonTooLarge, "its layers have more than 1 bytes")
}
