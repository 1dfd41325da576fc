package image

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
)

// TestIsBlob checks which answers the manifest limits.
func TestIsBlob(t *testing.T) {
	t.Parallel()
	const digest = "sha256:0000000000000000000000000000000000000000000000000000000000000000"
	for path, want := range map[string]bool{
		"/v2/team/catalog/blobs/" + digest:      true,
		"/v2/blobs/sha256/blobs/" + digest:      true,
		"/v2/a/blobs/sha256/manifests/latest":   false,
		"/v2/a/blobs/sha/manifests/" + digest:   false,
		"/v2/a/blobs/sha/referrers/" + digest:   false,
		"/v2/team/catalog/manifests/latest":     false,
		"/v2/team/catalog/blobs/uploads/latest": false,
	} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://registry.example.com"+path, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		if got := isBlob(request); got != want {
			t.Errorf("%s: got %t, want %t", path, got, want)
		}
	}
}

// TestRepositoryNamedAsABlob serves an endless manifest from a repository whose path looks like the
// path of a blob.
func TestRepositoryNamedAsABlob(t *testing.T) {
	r := serve(t, (*httptest.Server).Start)
	reference := r.push(t, "a/blobs/sha256:v1", simple(t, "1"))
	var sent atomic.Int64
	r.answer(func(w http.ResponseWriter, request *http.Request) bool {
		if request.Method != http.MethodGet || !strings.Contains(request.URL.Path, "/manifests/") {
			return false
		}
		w.Header().Set("Content-Type", "application/vnd.oci.image.manifest.v1+json")
		part := []byte(strings.Repeat(" ", 1<<16))
		for sent.Store(0); sent.Load() < 64<<20; {
			n, err := w.Write(part)
			sent.Add(int64(n))
			if err != nil {
				break
			}
		}
		return true
	})
	_, err := client(t, nil).Labels(t.Context(), reference)
	if all := sent.Load(); all >= 64<<20 {
		t.Errorf("all %d bytes were read", all)
	}
	expect(t, "an endless manifest", err, reference, ReasonTooLarge, "bytes where a manifest is expected")
}
