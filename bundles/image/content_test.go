package image

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"
)

// blobsOf returns the digests of the configuration and the layers of an image.
func blobsOf(t *testing.T, img v1.Image) []string {
	t.Helper()
	m, err := img.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	out := []string{m.Config.Digest.String()}
	for i := range m.Layers {
		out = append(out, m.Layers[i].Digest.String())
	}
	return out
}

func layers(t *testing.T, count int64) v1.Image {
	t.Helper()
	img, err := random.Image(100, count)
	if err != nil {
		t.Fatal(err)
	}
	return img
}

func TestCheckContent(t *testing.T) {
	r := serve(t, (*httptest.Server).Start)
	img := layers(t, 9)
	blobs := blobsOf(t, img)
	other := layers(t, 1)
	index := mutate.AppendManifests(empty.Index,
		mutate.IndexAddendum{Add: other, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: "s390x"}}},
		mutate.IndexAddendum{Add: img, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: runtime.GOARCH}}})
	reference := r.push(t, "many:v1", index)

	cases := map[string]struct {
		reason   string
		platform string
		// answers are the answers for blobs, by their digests.
		answers map[string]int
		want    Reason
		missing []string
		text    string
	}{
		"Complete":      {reason: "the registry has all blobs"},
		"OtherPlatform": {reason: "blobs of other platforms are not needed", answers: map[string]int{blobsOf(t, other)[1]: http.StatusNotFound}},
		"ChosenPlatform": {
			reason: "the platform of the client is checked", platform: "linux/s390x", answers: map[string]int{blobsOf(t, other)[1]: http.StatusNotFound},
			want: ReasonNotFound, missing: blobsOf(t, other)[1:], text: "for linux/s390x is there, but 1 of its 2 blobs are missing",
		},
		"Half": {
			reason: "all missing blobs are found", answers: map[string]int{blobs[0]: http.StatusNotFound, blobs[3]: http.StatusNotFound, blobs[9]: http.StatusNotFound},
			want: ReasonNotFound, missing: []string{blobs[0], blobs[3], blobs[9]}, text: "3 of its 10 blobs are missing, first " + blobs[0],
		},
		"Denied": {
			reason: "other answers name the blob", answers: map[string]int{blobs[2]: http.StatusForbidden},
			want: ReasonUnauthorized, text: "asking for blob " + blobs[2],
		},
		"NoHead":      {reason: "a registry may know no HEAD", answers: map[string]int{blobs[2]: http.StatusMethodNotAllowed}},
		"OtherLength": {reason: "a blob may be damaged", answers: map[string]int{blobs[2]: http.StatusOK}, want: ReasonInvalid, text: "it has 7 bytes, but its manifest says"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r.answer(func(w http.ResponseWriter, request *http.Request) bool {
				status := tc.answers[request.URL.Path[strings.LastIndex(request.URL.Path, "/")+1:]]
				if status == 0 || status == http.StatusMethodNotAllowed && request.Method != http.MethodHead {
					return false
				}
				w.Header().Set("Content-Length", "7")
				w.WriteHeader(status)
				return true
			})
			_, err := CheckContent(t.Context(), client(t, func(o *Options) { o.Platform = tc.platform }), reference)
			if ReasonOf(err) != tc.want || (tc.want != "" && !strings.Contains(err.Error(), tc.text)) {
				t.Errorf("%s: got %v, want reason %q and text %q", tc.reason, err, tc.want, tc.text)
			}
			incomplete, ok := errors.AsType[*IncompleteError](err)
			if ok != (tc.missing != nil) || ok && strings.Join(incomplete.Missing, " ") != strings.Join(tc.missing, " ") {
				t.Errorf("%s: got %+v, want missing %v", tc.reason, incomplete, tc.missing)
			}
		})
	}
}

// TestCheckContentIsBounded checks that an image with many layers causes few concurrent requests, and no transfer.
func TestCheckContentIsBounded(t *testing.T) {
	r := serve(t, (*httptest.Server).Start)
	reference := r.push(t, "large:v1", layers(t, 40))
	var (
		mu           sync.Mutex
		asked, most  int
		concurrently int
		reached      = make(chan struct{})
	)
	r.answer(func(_ http.ResponseWriter, request *http.Request) bool {
		if !strings.Contains(request.URL.Path, "/blobs/") {
			return false
		}
		if request.Method != http.MethodHead {
			t.Errorf("%s %s", request.Method, request.URL.Path)
		}
		mu.Lock()
		asked++
		concurrently++
		if most = max(most, concurrently); concurrently == maxBlobRequests && asked == maxBlobRequests {
			close(reached)
		}
		mu.Unlock()
		<-reached
		mu.Lock()
		concurrently--
		mu.Unlock()
		return false
	})
	if _, err := CheckContent(t.Context(), client(t, func(o *Options) { o.Limits.MaxLayers = 1 }), reference); err != nil {
		t.Fatal(err)
	}
	if asked != 41 || most != maxBlobRequests {
		t.Errorf("asked for %d blobs, at most %d at once; want 41 and %d", asked, most, maxBlobRequests)
	}
}
