package image

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// names returns the names of the files in a directory.
func names(t *testing.T, dir string) []string {
	t.Helper()
	all, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	found := make([]string, len(all))
	for i := range all {
		found[i] = all[i].Name()
	}
	return found
}

func read(t *testing.T, kept *Kept) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(kept.Path, "c"))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// stored is a registry with an image whose tag moves, and a store.
type stored struct {
	*fakeRegistry

	t         *testing.T
	client    *Client
	store     Store
	reference string
	requests  atomic.Int32
}

func newStored(t *testing.T) *stored {
	t.Helper()
	s := &stored{fakeRegistry: serve(t, (*httptest.Server).Start), t: t, store: Store{Dir: filepath.Join(t.TempDir(), "store")}}
	s.client = client(t, nil)
	s.answer(func(http.ResponseWriter, *http.Request) bool {
		s.requests.Add(1)
		return false
	})
	return s
}

// tag moves the tag to an image with a text and returns the digest of the image.
func (s *stored) tag(text string) string {
	s.t.Helper()
	img := simple(s.t, text)
	s.reference = s.push(s.t, "catalog:latest", img)
	digest, err := img.Digest()
	if err != nil {
		s.t.Fatal(err)
	}
	s.requests.Store(0)
	return digest.String()
}

func (s *stored) get(digest string) *Kept {
	s.t.Helper()
	kept, err := s.store.Get(s.t.Context(), s.client, s.reference, digest, Catalog())
	if err != nil {
		s.t.Fatal(err)
	}
	return kept
}

func TestStore(t *testing.T) {
	s := newStored(t)
	old := s.tag("old")
	first := s.get(old)
	if got := read(t, first); got != "old" || s.requests.Load() == 0 {
		t.Errorf("got %q after %d requests", got, s.requests.Load())
	}
	if left := names(t, first.Entry); len(left) != 2 {
		t.Errorf("the entry holds %q", left)
	}
	s.requests.Store(0)
	second := s.get(old)
	if got := read(t, second); got != "old" || s.requests.Load() != 0 {
		t.Errorf("got %q after %d requests, want it from the store", got, s.requests.Load())
	}
	second.Release()

	third := s.get(s.tag("new"))
	if err := s.store.Prune(third); err != nil || read(t, first) != "old" {
		t.Errorf("what is in use was removed: %v", err)
	}
	first.Release()
	if err := s.store.Prune(third); err != nil {
		t.Fatal(err)
	}
	if left := names(t, s.store.Dir); len(left) != 1 || read(t, third) != "new" {
		t.Errorf("the store holds %q", left)
	}
	third.Release()
}

// TestStoreDamaged checks that an entry whose files have lost their content is detected.
func TestStoreDamaged(t *testing.T) {
	s := newStored(t)
	digest := s.tag("text")
	for what, damage := range map[string]func(*Kept) error{
		"Truncated": func(k *Kept) error { return os.Truncate(filepath.Join(k.Path, "c"), 0) },
		"NoFile":    func(k *Kept) error { return os.Remove(filepath.Join(k.Path, "c")) },
		"NoRecord":  func(k *Kept) error { return os.Remove(filepath.Join(k.Entry, recordName)) },
		"BadRecord": func(k *Kept) error { return os.WriteFile(filepath.Join(k.Entry, recordName), []byte("x"), 0o600) },
	} {
		kept := s.get(digest)
		kept.Release()
		if err := damage(kept); err != nil {
			t.Fatal(err)
		}
		kept = s.get(digest)
		if got := read(t, kept); got != "text" {
			t.Errorf("%s: got %q", what, got)
		}
		kept.Release()
		if left := names(t, s.store.Dir); len(left) != 1 {
			t.Errorf("%s: the store holds %q", what, left)
		}
	}
}

// TestStoreFailure checks that a failure leaves nothing behind.
func TestStoreFailure(t *testing.T) {
	s := newStored(t)
	s.tag("x")
	missing := "sha256:" + strings.Repeat("a", 64)
	_, err := s.store.Get(t.Context(), s.client, s.reference, missing, Catalog())
	expect(t, "the user's reference is named", err, s.reference, ReasonNotFound, "MANIFEST_UNKNOWN")
	if left := names(t, s.store.Dir); len(left) != 0 {
		t.Errorf("the store holds %q", left)
	}
	_, err = s.store.Get(t.Context(), s.client, s.reference, "../../x", Catalog())
	expect(t, "digests are digests", err, s.reference, ReasonReference, "is no digest")
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = Store{Dir: file}.Get(t.Context(), s.client, s.reference, missing, Catalog())
	expect(t, "a place to write to is needed", err, s.reference, ReasonLocal, "making the directory")
}

// TestStoreShared has many goroutines store the same content concurrently, as several processes would.
func TestStoreShared(t *testing.T) {
	s := newStored(t)
	digest := s.tag("text")
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			kept, err := s.store.Get(t.Context(), s.client, s.reference, digest, Catalog())
			if err != nil {
				t.Error(err)
				return
			}
			defer kept.Release()
			if data, err := os.ReadFile(filepath.Join(kept.Path, "c")); err != nil || string(data) != "text" {
				t.Errorf("got %q, %v", data, err)
			}
			if err := s.store.Prune(kept); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if left := names(t, s.store.Dir); len(left) != 1 {
		t.Errorf("the store holds %q", left)
	}
}

func TestRemember(t *testing.T) {
	s := Store{Dir: t.TempDir()}
	digest := "sha256:" + strings.Repeat("a", 64)
	if _, ok := s.Recall("a.example/b"); ok {
		t.Error("what was never said is remembered")
	}
	if err := s.Remember("a.example/b", digest); err != nil {
		t.Fatal(err)
	}
	if got, ok := s.Recall("a.example/b"); !ok || got != digest {
		t.Errorf("got %q, %v", got, ok)
	}
	if err := os.WriteFile(s.tagName("a.example/b"), []byte("x a.example/b"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, ok := s.Recall("a.example/b"); ok {
		t.Error("what is no digest is taken for one")
	}
	if left := names(t, s.Dir); len(left) != 1 {
		t.Errorf("the store holds %q", left)
	}
}
