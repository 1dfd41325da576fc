package source

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/chandlery/chandlery/bundles/fbc"
	"github.com/chandlery/chandlery/bundles/index"
)

const cached = `{"schema":"olm.package","name":"p","defaultChannel":"c"}
{"schema":"olm.channel","package":"p","name":"c","entries":[{"name":"p.v1"}]}
{"schema":"olm.bundle","package":"p","name":"p.v1","image":"example.org/p:one","properties":[
  {"type":"olm.package","value":{"packageName":"p","version":"1.0.0"}}]}
`

// catalogDir writes a catalog whose files have a fixed modification time.
func catalogDir(t *testing.T) Dir {
	t.Helper()
	dir := t.TempDir()
	writeAt(t, filepath.Join(dir, "p.json"), cached, time.Unix(1000, 0))
	return Dir{Path: dir, Cache: Cache{Dir: filepath.Join(t.TempDir(), "cache")}}
}

func writeAt(t *testing.T, name, content string, at time.Time) {
	t.Helper()
	if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(name, at, at); err != nil {
		t.Fatal(err)
	}
}

func load(t *testing.T, d Dir) *index.Index {
	t.Helper()
	x, err := d.Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// imageOf returns the value that distinguishes the contents.
func imageOf(t *testing.T, x *index.Index) string {
	t.Helper()
	message, err := x.Bundle("p", "c", "p.v1")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(message.Bytes()), "example.org/p:")
	return rest[:3]
}

func TestCache(t *testing.T) {
	other := strings.ReplaceAll(cached, "p:one", "p:two")
	cases := map[string]struct {
		reason string
		change func(t *testing.T, d *Dir)
		want   string
		reused bool
	}{
		"Unchanged": {reason: "the cache saves the work", change: func(*testing.T, *Dir) {}, want: "one", reused: true},
		"Touched": {
			reason: "the content counts, not when it was written",
			change: func(t *testing.T, d *Dir) {
				t.Helper()
				writeAt(t, filepath.Join(d.Path, "p.json"), cached, time.Unix(2000, 0))
			},
			want: "one", reused: true,
		},
		"Changed": {
			reason: "a content of the same size is another content",
			change: func(t *testing.T, d *Dir) {
				t.Helper()
				writeAt(t, filepath.Join(d.Path, "p.json"), other, time.Unix(2000, 0))
			},
			want: "two",
		},
		"Longer": {
			reason: "so is one of another size",
			change: func(t *testing.T, d *Dir) {
				t.Helper()
				writeAt(t, filepath.Join(d.Path, "p.json"), other+"\n", time.Unix(1000, 0))
			},
			want: "two",
		},
		"More": {
			reason: "so is one of more files",
			change: func(t *testing.T, d *Dir) {
				t.Helper()
				writeAt(t, filepath.Join(d.Path, "q.json"), "", time.Unix(1000, 0))
			},
			want: "one",
		},
		"Disguised": {
			reason: "who has reason to suspect the times can say so",
			change: func(t *testing.T, d *Dir) {
				t.Helper()
				d.Cache.Suspicious = true
				writeAt(t, filepath.Join(d.Path, "p.json"), other, time.Unix(1000, 0))
			},
			want: "two",
		},
		"Suspicious": {
			reason: "suspicion alone makes nothing anew",
			change: func(_ *testing.T, d *Dir) { d.Cache.Suspicious = true },
			want:   "one", reused: true,
		},
		"Damaged": {
			reason: "a damaged index is as good as none",
			change: func(t *testing.T, d *Dir) {
				t.Helper()
				if err := os.Truncate(d.Cache.file(), 1000); err != nil {
					t.Fatal(err)
				}
			},
			want: "one",
		},
		"Foreign": {
			reason: "so is another tool's file",
			change: func(t *testing.T, d *Dir) {
				t.Helper()
				writeAt(t, d.Cache.file(), "PK\x03\x04", time.Unix(1000, 0))
			},
			want: "one",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			d := catalogDir(t)
			if got := imageOf(t, load(t, d)); got != "one" {
				t.Fatalf("got the image %s", got)
			}
			before := stat(t, d.Cache.file())
			tc.change(t, &d)
			x, fingerprint := d.Warm(t.Context())
			if now, err := d.Fingerprint(); (x != nil) != tc.reused || x != nil && fingerprint != now || err != nil {
				t.Errorf("%s: known without reading: %v, fingerprints %q and %q, %v", tc.reason, x != nil, fingerprint, now, err)
			}
			if got := imageOf(t, load(t, d)); got != tc.want {
				t.Errorf("%s: got the image %s, want %s", tc.reason, got, tc.want)
			}
			if reused := os.SameFile(before, stat(t, d.Cache.file())); reused != tc.reused {
				t.Errorf("%s: the old index is used: %v", tc.reason, reused)
			}
			if tc.reused {
				return
			}
			after := stat(t, d.Cache.file())
			load(t, d)
			if !os.SameFile(after, stat(t, d.Cache.file())) {
				t.Errorf("%s: the new index is not used", tc.reason)
			}
		})
	}
}

func stat(t *testing.T, name string) os.FileInfo {
	t.Helper()
	info, err := os.Stat(name)
	if err != nil {
		t.Fatal(err)
	}
	return info
}

// TestVerifyFindsDisguisedContent covers images whose files all have the same time: names, sizes
// and times match another content.
func TestVerifyFindsDisguisedContent(t *testing.T) {
	d := catalogDir(t)
	x := load(t, d)
	if same, err := d.Verify(t.Context(), x); !same || err != nil {
		t.Errorf("the index is not that of its content: %v", err)
	}
	writeAt(t, filepath.Join(d.Path, "p.json"), strings.ReplaceAll(cached, "p:one", "p:two"), time.Unix(1000, 0))
	x = load(t, d)
	if got := imageOf(t, x); got != "one" {
		t.Fatalf("this content was not disguised: %s", got)
	}
	if same, err := d.Verify(t.Context(), x); same || err != nil {
		t.Errorf("the index passes for that of another content: %v", err)
	}
	fresh, err := d.LoadFresh(t.Context())
	if err != nil || imageOf(t, fresh) != "two" {
		t.Errorf("the fresh index is that of the old content: %v", err)
	}
	if same, err := d.Verify(t.Context(), load(t, d)); !same || err != nil {
		t.Errorf("the cache keeps the old index: %v", err)
	}
}

// TestPlaces covers the places where an index can be stored.
func TestPlaces(t *testing.T) {
	blocked := func(t *testing.T) string {
		t.Helper()
		file := filepath.Join(t.TempDir(), "file")
		writeAt(t, file, "", time.Now())
		return filepath.Join(file, "below")
	}
	cases := map[string]struct {
		reason string
		cache  func(*testing.T) string
		temp   func(*testing.T) string
	}{
		"NoCache":  {"without a cache there is a temporary file", func(*testing.T) string { return "" }, (*testing.T).TempDir},
		"BadCache": {"a cache that cannot be written is none", blocked, (*testing.T).TempDir},
		"Nowhere":  {"where nothing can be written there is memory", blocked, blocked},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			d := catalogDir(t)
			d.Cache.Dir = tc.cache(t)
			var logs bytes.Buffer
			d.Cache.Logger = slog.New(slog.NewTextHandler(&logs, nil))
			temp := tc.temp(t)
			t.Setenv("TMPDIR", temp)
			if got := imageOf(t, load(t, d)); got != "one" {
				t.Errorf("%s: got the image %s", tc.reason, got)
			}
			if left, err := os.ReadDir(temp); err == nil && len(left) > 0 {
				t.Errorf("%s: %s is left over", tc.reason, left)
			}
			if want := d.Cache.Dir != ""; strings.Contains(logs.String(), "Cannot keep the index in the cache directory") != want {
				t.Errorf("%s: the log says\n%s", tc.reason, logs.String())
			}
		})
	}
}

func TestCacheKeepsWhatWasMade(t *testing.T) {
	d := catalogDir(t)
	made := load(t, d)
	x, err := index.Open(d.Cache.file())
	if err != nil || x.Digest() != made.Digest() || len(x.Sources()) != 1 || x.Info().SourceDigest == "" {
		t.Errorf("what was made is not there: %v", err)
	}
}

// TestObstacles puts obstacles in the way of a cache that must not fail or block anything.
func TestObstacles(t *testing.T) {
	cases := map[string]struct {
		reason string
		put    func(t *testing.T, d *Dir) error
		cached bool
	}{
		"Directory": {
			reason: "a directory that is called like the index",
			put:    func(_ *testing.T, d *Dir) error { return os.MkdirAll(filepath.Join(d.Cache.file(), "x"), 0o700) },
		},
		"Pipe": {
			reason: "a pipe that nobody writes to",
			put: func(_ *testing.T, d *Dir) error {
				return errors.Join(os.MkdirAll(d.Cache.Dir, 0o700), syscall.Mkfifo(d.Cache.file(), 0o600))
			},
			cached: true,
		},
		"IgnoredPipe": {
			reason: "a pipe in the catalog that is excluded",
			put: func(_ *testing.T, d *Dir) error {
				return errors.Join(os.WriteFile(filepath.Join(d.Path, ".indexignore"), []byte("pipe\n"), 0o600),
					syscall.Mkfifo(filepath.Join(d.Path, "pipe"), 0o600))
			},
			cached: true,
		},
		"IgnoredLinks": {
			reason: "links to a directory and to nothing that are excluded, as in mounted volumes",
			put: func(_ *testing.T, d *Dir) error {
				return errors.Join(os.WriteFile(filepath.Join(d.Path, ".indexignore"), []byte("..data\nnone\n"), 0o600),
					os.Symlink("/", filepath.Join(d.Path, "..data")), os.Symlink("nowhere", filepath.Join(d.Path, "none")))
			},
			cached: true,
		},
		"Inside": {
			reason: "the cache lies in the catalog",
			put: func(_ *testing.T, d *Dir) error {
				d.Cache.Dir = filepath.Join(d.Path, "cache")
				return nil
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			d := catalogDir(t)
			if err := tc.put(t, &d); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				if got := imageOf(t, load(t, d)); got != "one" {
					t.Errorf("%s: got the image %s", tc.reason, got)
				}
			}
			if x, _ := d.Warm(t.Context()); (x != nil) != tc.cached {
				t.Errorf("%s: the cache is used: %v", tc.reason, x != nil)
			}
		})
	}
}

// TestIndexWithoutSources has an index that does not record its source.
func TestIndexWithoutSources(t *testing.T) {
	d := catalogDir(t)
	load(t, d)
	reader, err := fbc.Open(t.Context(), os.DirFS(d.Path), fbc.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := index.Create(t.Context(), d.Cache.file(), reader, index.Options{}); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(reader.Close(), os.Remove(filepath.Join(d.Path, "p.json"))); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Load(t.Context()); err == nil {
		t.Error("it passes for that of an empty directory")
	}
}

// TestCacheOfTwo has two processes store the indexes of two catalogs in one place.
func TestCacheOfTwo(t *testing.T) {
	one := catalogDir(t)
	two := catalogDir(t)
	writeAt(t, filepath.Join(two.Path, "p.json"), strings.ReplaceAll(cached, "p:one", "p:two"), time.Unix(1000, 0))
	two.Cache = one.Cache
	group, ctx := errgroup.WithContext(t.Context())
	for want, d := range map[string]Dir{"one": one, "two": two} {
		group.Go(func() error {
			for range 100 {
				x, err := d.LoadFresh(ctx)
				if err != nil {
					return err
				}
				message, err := x.Bundle("p", "c", "p.v1")
				if err != nil || !bytes.Contains(message.Bytes(), []byte("example.org/p:"+want)) {
					return fmt.Errorf("catalog %s has become another: %w", want, err)
				}
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		t.Error(err)
	}
}

// TestCreateOfChangingDirectory adds files while the index is built.
func TestCreateOfChangingDirectory(t *testing.T) {
	d, builds := catalogDir(t), 0
	name := filepath.Join(t.TempDir(), "c.index")
	other := strings.NewReplacer(`"p"`, `"q"`, "p.v1", "q.v1").Replace(cached)
	d.Progress = func(int, int) {
		builds++
		if builds == 1 {
			writeAt(t, filepath.Join(d.Path, "q.json"), other, time.Unix(1000, 0))
		}
	}
	info, err := d.Create(t.Context(), name)
	if err != nil || info.Packages != 2 {
		t.Errorf("got %d packages, %v, want both that are there in the end", info.Packages, err)
	}
	d.Progress = func(int, int) {
		builds++
		writeAt(t, filepath.Join(d.Path, "q.json"), other, time.Unix(int64(2000+builds), 0))
	}
	if _, err := d.Create(t.Context(), name); !errors.Is(err, errChanging) {
		t.Errorf("a directory that is never at rest: %v", err)
	}
}
