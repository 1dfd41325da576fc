package source

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chandlery/chandlery/bundles"
	"github.com/chandlery/chandlery/bundles/index"
)

// made builds an index file of a catalog.
func made(t *testing.T, version string) string {
	t.Helper()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "c"), catalogOf(version))
	name := filepath.Join(t.TempDir(), "index")
	if _, err := (Dir{Path: dir}).Create(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	return name
}

func TestFile(t *testing.T) {
	f := File{Path: made(t, "1.0.0")}
	x, err := f.Load(t.Context())
	if err != nil || versionOf(t, x) != "1.0.0" {
		t.Fatalf("got %v", err)
	}
	before, err := f.Fingerprint()
	if err != nil {
		t.Fatal(err)
	}
	if again, err := f.Fingerprint(); err != nil || again != before {
		t.Errorf("the fingerprint changes by itself: %v", err)
	}
	if err := os.Rename(made(t, "2.0.0"), f.Path); err != nil {
		t.Fatal(err)
	}
	if after, err := f.Fingerprint(); err != nil || after == before {
		t.Errorf("a file that was replaced is not noticed: %v", err)
	}
	y, err := f.Load(t.Context())
	if err != nil || versionOf(t, y) != "2.0.0" || versionOf(t, x) != "1.0.0" {
		t.Errorf("after the file was replaced: %v", err)
	}
}

func TestBadFile(t *testing.T) {
	dir := t.TempDir()
	whole, err := os.ReadFile(made(t, "1.0.0"))
	if err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		reason     string
		text       string
		want       string
		unreadable bool
	}{
		"Foreign":   {reason: "any file", text: "hello", want: "rebuild it with 'registry build'"},
		"Empty":     {reason: "no content", text: "", want: "rebuild it with 'registry build'"},
		"Truncated": {reason: "half of one", text: string(whole[:len(whole)-1]), want: "rebuild it with 'registry build'"},
		"Missing":   {reason: "none", want: "there is no such file; check the path and what is mounted there", unreadable: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := File{Path: filepath.Join(dir, name)}
			if !tc.unreadable {
				write(t, f.Path, tc.text)
			}
			_, err := f.Load(t.Context())
			problems := bundles.AsProblems(err)
			if len(problems) != 1 || problems[0].File != f.Path || !strings.Contains(problems[0].String(), tc.want) ||
				problems[0].Unreadable != tc.unreadable {
				t.Errorf("%s: got %+v", tc.reason, problems)
			}
		})
	}
	if _, err := (File{Path: filepath.Join(dir, "none")}).Fingerprint(); err == nil {
		t.Error("a missing file has a fingerprint")
	}
}

// TestDamagedFile checks that the error names the file and the remedy.
func TestDamagedFile(t *testing.T) {
	f := File{Path: "x.index"}
	const want = "x.index: the index is damaged; rebuild the file with 'registry build'"
	if got := bundles.AsProblems(f.Damaged(index.ErrDamaged)); len(got) != 1 || got[0].String() != want {
		t.Errorf("got %v", got)
	}
}

func TestEmptyFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "index")
	if _, err := (Dir{Path: t.TempDir(), AllowEmpty: true}).Create(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	if _, err := (File{Path: name}).Load(t.Context()); err == nil {
		t.Error("an index without a package is served")
	}
	if _, err := (File{Path: name, AllowEmpty: true}).Load(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestCreate checks that the same content always produces the same file, and that the file serves as a cache.
func TestCreate(t *testing.T) {
	dir, cache := t.TempDir(), t.TempDir()
	write(t, filepath.Join(dir, "c"), catalog)
	name := filepath.Join(cache, IndexFile)
	create := func() string {
		if _, err := (Dir{Path: dir}).Create(t.Context(), name); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	first := create()
	if err := os.Chtimes(filepath.Join(dir, "c"), time.Time{}, time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	if create() != first {
		t.Error("the time of a file shows")
	}
	before, err := os.Stat(name)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := (Dir{Path: dir, Cache: Cache{Dir: cache}}).Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	if after, err := os.Stat(name); err != nil || !os.SameFile(before, after) {
		t.Errorf("the index was rebuilt: %v", err)
	}
	write(t, filepath.Join(dir, "c"), catalog+catalog)
	if _, err := (Dir{Path: dir}).Create(t.Context(), name); len(bundles.AsProblems(err)) == 0 {
		t.Error("a broken catalog makes an index")
	}
	if now, err := os.ReadFile(name); err != nil || string(now) != first {
		t.Errorf("a broken catalog replaces the index: %v", err)
	}
	if _, err := (Dir{Path: t.TempDir()}).Create(t.Context(), name); len(bundles.AsProblems(err)) == 0 {
		t.Error("an empty directory makes an index")
	}
	if names := left(t, cache); len(names) != 1 {
		t.Errorf("left behind: %q", names)
	}
}
