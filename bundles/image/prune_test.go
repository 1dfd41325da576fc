package image

import (
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// keep stores several images, each used a minute after the previous one.
func (s *stored) keep(texts ...string) []*Kept {
	s.t.Helper()
	var all []*Kept
	for i, text := range texts {
		kept := s.get(s.tag(text))
		then := time.Now().Add(time.Duration(i-len(texts)) * time.Minute)
		if err := os.Chtimes(filepath.Join(kept.Entry, recordName), then, then); err != nil {
			s.t.Fatal(err)
		}
		all = append(all, kept)
	}
	return all
}

// has returns which of several entries still exist.
func (s *stored) has(all []*Kept) string {
	s.t.Helper()
	var out []string
	for _, kept := range all {
		if data, err := os.ReadFile(filepath.Join(kept.Path, "c")); err == nil {
			out = append(out, string(data))
		}
	}
	return strings.Join(out, " ")
}

func TestBound(t *testing.T) {
	s := newStored(t)
	all := s.keep("a", "b", "c", "d")
	bound := func(size int64, want string) {
		t.Helper()
		usage, err := s.store.Bound(size)
		if got := s.has(all); err != nil || got != want || usage.Images != len(strings.Fields(want)) {
			t.Errorf("bound to %d bytes it holds %q and says %+v, %v, want %q", size, got, usage, err, want)
		}
	}
	bound(1<<20, "a b c d")
	usage, err := s.store.Bound(1 << 20)
	if err != nil {
		t.Fatal(err)
	}
	one := usage.Bytes / 4
	bound(0, "a b c d")
	for _, kept := range all[1:] {
		kept.Release()
	}
	bound(3*one+one/2, "a c d")
	// Use makes an entry recent.
	again, err := s.store.Open(s.client, s.reference, all[2].Digest, Catalog())
	if err != nil {
		t.Fatal(err)
	}
	again.Release()
	bound(2*one+one/2, "a c")
	all[0].Release()
	bound(one+one/2, "c")
	bound(0, "")
	if usage, err := (Store{Dir: filepath.Join(s.store.Dir, "nowhere")}).Bound(0); err != nil || usage != (Usage{}) {
		t.Errorf("a store that was never used: %+v, %v", usage, err)
	}
}

// TestBoundCleansUp checks that leftovers are removed.
func TestBoundCleansUp(t *testing.T) {
	s := newStored(t)
	all := s.keep("a")
	all[0].Release()
	remember := func(reference, digest string, age time.Duration) {
		t.Helper()
		if err := s.store.Remember(reference, digest); err != nil {
			t.Fatal(err)
		}
		then := time.Now().Add(-age)
		if err := os.Chtimes(s.store.tagName(reference), then, then); err != nil {
			t.Fatal(err)
		}
	}
	remember("known", all[0].Digest, 0)
	remember("old", all[0].Digest, 2*maxTagAge)
	remember("gone", "sha256:"+strings.Repeat("a", 64), 0)
	leave := func(name string, folder bool, age time.Duration) {
		t.Helper()
		full := filepath.Join(s.store.Dir, name)
		var err error
		if folder {
			err = os.Mkdir(full, 0o700)
		} else {
			err = os.WriteFile(full, nil, 0o600)
		}
		then := time.Now().Add(-age)
		if err == nil {
			err = os.Chtimes(full, then, then)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	leave(newPrefix+"young", true, 0)
	leave(newPrefix+"left", true, time.Hour)
	leave(newPrefix+"unsaid", false, time.Hour)
	leave("foreign", true, time.Hour)
	if _, err := s.store.Bound(1 << 20); err != nil {
		t.Fatal(err)
	}
	want := []string{newPrefix + "young", "foreign", filepath.Base(all[0].Entry), filepath.Base(s.store.tagName("known"))}
	if got := names(t, s.store.Dir); strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("it holds %q, want %q", got, want)
	}
	s.store.Forget("known")
	s.store.Forget("never known")
	if _, ok := s.store.Recall("known"); ok {
		t.Error("what was forgotten is known")
	}
}

// TestBoundShared has many goroutines store, use and remove content concurrently, as several processes would.
func TestBoundShared(t *testing.T) {
	s := newStored(t)
	digests := []string{s.tag("a"), s.tag("b"), s.tag("c")}
	var group sync.WaitGroup
	for i := range 8 {
		group.Go(func() {
			for j := range 10 {
				kept, err := s.store.Get(t.Context(), s.client, s.reference, digests[(i+j)%3], Catalog())
				if err != nil {
					t.Error(err)
					return
				}
				if _, err := s.store.Bound(0); err != nil {
					t.Error(err)
				}
				if data, err := os.ReadFile(filepath.Join(kept.Path, "c")); err != nil || len(data) != 1 {
					t.Errorf("what is in use holds %q, %v", data, err)
				}
				kept.Release()
			}
		})
	}
	group.Wait()
}

// TestStoreApart checks that content of one repository is not returned for another.
func TestStoreApart(t *testing.T) {
	s := newStored(t)
	s.store.Apart = true
	digest := s.tag("text")
	s.get(digest).Release()
	if _, err := s.store.Open(s.client, s.reference, digest, Catalog()); err != nil {
		t.Error(err)
	}
	other := serve(t, (*httptest.Server).Start)
	_, err := s.store.Open(s.client, other.host()+"/catalog", digest, Catalog())
	expect(t, "another registry", err, other.host()+"/catalog", ReasonLocal, "no such file")
	_, err = s.store.Get(t.Context(), s.client, s.host()+"/other", digest, Catalog())
	expect(t, "another repository", err, s.host()+"/other", ReasonNotFound, "404")
}

// TestStoreSum checks that changed content of the same length is detected.
func TestStoreSum(t *testing.T) {
	s := newStored(t)
	digest := s.tag("text")
	kept := s.get(digest)
	kept.Release()
	if err := os.WriteFile(filepath.Join(kept.Path, "c"), []byte("tixt"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := s.store.Open(s.client, s.reference, digest, Catalog()); err == nil {
		t.Error("damaged content is handed out")
	}
	kept = s.get(digest)
	if got := read(t, kept); got != "text" {
		t.Errorf("got %q", got)
	}
	kept.Release()
}
