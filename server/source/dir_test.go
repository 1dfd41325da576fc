package source

import (
	"crypto/sha256"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/chandlery/chandlery/bundles"
)

const catalog = `{"schema":"olm.package","name":"p","defaultChannel":"a"}
{"schema":"olm.channel","package":"p","name":"a","entries":[{"name":"b"}]}
{"schema":"olm.bundle","package":"p","name":"b","image":"i","properties":[
 {"type":"olm.package","value":{"packageName":"p","version":"1.0.0"}}]}`

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestLoad(t *testing.T) {
	cases := map[string]struct {
		reason string
		make   func(t *testing.T, dir string) Dir
		want   []string
	}{
		"Good": {
			reason: "a catalog",
			make: func(t *testing.T, dir string) Dir {
				t.Helper()
				write(t, filepath.Join(dir, "c"), catalog)
				return Dir{Path: dir}
			},
		},
		"Missing": {
			reason: "the path is named",
			make:   func(_ *testing.T, dir string) Dir { return Dir{Path: filepath.Join(dir, "none")} },
			want:   []string{"DIR/none: there is no such directory; check the path and what is mounted there"},
		},
		"File": {
			reason: "a file is no directory",
			make: func(t *testing.T, dir string) Dir {
				t.Helper()
				write(t, filepath.Join(dir, "c"), catalog)
				return Dir{Path: filepath.Join(dir, "c")}
			},
			want: []string{"DIR/c: is not a directory; name the directory that the catalog's files lie in"},
		},
		"Empty": {
			reason: "nothing to serve",
			make:   func(_ *testing.T, dir string) Dir { return Dir{Path: dir} },
			want: []string{
				"DIR: the catalog directory holds no package; check the path and what is mounted there, or allow it with --allow-empty",
			},
		},
		"EmptyAllowed": {
			reason: "unless it is wanted",
			make:   func(_ *testing.T, dir string) Dir { return Dir{Path: dir, AllowEmpty: true} },
		},
		"Invalid": {
			reason: "what validation finds comes through",
			make: func(t *testing.T, dir string) Dir {
				t.Helper()
				write(t, filepath.Join(dir, "c"), catalog+`{"schema":"olm.package","name":"p","defaultChannel":"a"}`)
				return Dir{Path: dir}
			},
			want: []string{
				`c:4: package "p": duplicate package, first declared in c:1; keep one olm.package object`,
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			_, err := tc.make(t, dir).Load(t.Context())
			var got []string
			for _, p := range bundles.AsProblems(err) {
				got = append(got, strings.ReplaceAll(p.String(), dir, "DIR"))
			}
			if strings.Join(got, "\n") != strings.Join(tc.want, "\n") {
				t.Errorf("%s: got %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}

func TestFingerprint(t *testing.T) {
	dir, target := t.TempDir(), t.TempDir()
	d := Dir{Path: dir}
	last := ""
	changed := func(what string, want bool) {
		t.Helper()
		now, err := d.Fingerprint()
		if err != nil {
			t.Fatal(err)
		}
		if (now != last) != want {
			t.Errorf("%s: changed is %v, want %v", what, now != last, want)
		}
		last = now
	}
	changed("the first look", true)
	changed("nothing", false)
	file := filepath.Join(dir, "a")
	write(t, file, "1")
	changed("a new file", true)
	if err := os.Chtimes(file, time.Time{}, time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	changed("another time", true)
	write(t, filepath.Join(target, "b"), "1")
	if err := os.Symlink(filepath.Join(target, "b"), filepath.Join(dir, "b")); err != nil {
		t.Fatal(err)
	}
	changed("a link", true)
	write(t, filepath.Join(target, "b"), "longer")
	changed("what a link leads to", true)
	if err := os.Remove(filepath.Join(target, "b")); err != nil {
		t.Fatal(err)
	}
	changed("a link that leads nowhere", true)
	if err := os.Rename(file, filepath.Join(dir, "c")); err != nil {
		t.Fatal(err)
	}
	changed("another name", true)
	changed("nothing again", false)
}

// TestFingerprintSameSizeAndTime replaces files by files of the same size and time.
func TestFingerprintSameSizeAndTime(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Log("only Linux tells such files apart")
		return
	}
	parent := t.TempDir()
	old := time.Unix(1, 0)
	create := func(name, text string) {
		dir := filepath.Join(parent, name)
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, "c"), text)
		for _, path := range []string{filepath.Join(dir, "c"), dir} {
			if err := os.Chtimes(path, old, old); err != nil {
				t.Fatal(err)
			}
		}
	}
	create("a", "1")
	create("b", "2")
	d := Dir{Path: filepath.Join(parent, "link")}
	look := func() string {
		text, err := d.Fingerprint()
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	if err := os.Symlink("a", d.Path); err != nil {
		t.Fatal(err)
	}
	first := look()
	if err := os.Remove(d.Path); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("b", d.Path); err != nil {
		t.Fatal(err)
	}
	second := look()
	if first == second {
		t.Error("a switched link is not noticed")
	}
	file := filepath.Join(parent, "b", "c")
	write(t, file, "3")
	if err := os.Chtimes(file, old, old); err != nil {
		t.Fatal(err)
	}
	if third := look(); third == second {
		t.Error("a rewritten file of the same size and time is not noticed")
	} else if err := os.Chmod(file, 0o000); err != nil || look() == third {
		t.Errorf("another mode is not noticed (%v)", err)
	}
}

// TestRecord checks that a record covers all metadata of a file.
func TestRecord(t *testing.T) {
	sum := func(name string, info fs.FileInfo) string {
		digest := sha256.New()
		record(digest, name, info)
		return string(digest.Sum(nil))
	}
	file := func(f fstest.MapFile) fs.FileInfo {
		info, err := fstest.MapFS{"f": &f}.Stat("f")
		if err != nil {
			t.Fatal(err)
		}
		return info
	}
	plain := sum("f", file(fstest.MapFile{}))
	for what, other := range map[string]string{
		"name":       sum("g", file(fstest.MapFile{})),
		"size":       sum("f", file(fstest.MapFile{Data: []byte("1")})),
		"mode":       sum("f", file(fstest.MapFile{Mode: 0o400})),
		"time":       sum("f", file(fstest.MapFile{ModTime: time.Unix(1, 0)})),
		"unreadable": sum("f", nil),
	} {
		if other == plain {
			t.Errorf("%s makes no difference", what)
		}
	}
}

// TestCatalogPinned switches the link to a catalog while the catalog is read.
func TestCatalogPinned(t *testing.T) {
	parent := t.TempDir()
	for _, name := range []string{"a", "b"} {
		if err := os.Mkdir(filepath.Join(parent, name), 0o700); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(parent, name, "c"), name)
	}
	link := filepath.Join(parent, "link")
	if err := os.Symlink("a", link); err != nil {
		t.Fatal(err)
	}
	root, err := openRoot(link)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(link); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("b", link); err != nil {
		t.Fatal(err)
	}
	if got, err := fs.ReadFile(root, "c"); err != nil || string(got) != "a" {
		t.Errorf("read %q, %v after the switch, want what the link led to before", got, err)
	}
}

func TestUnreadableRoot(t *testing.T) {
	for what, want := range map[string]bool{"none": false, "loop": true} {
		dir := t.TempDir()
		if err := os.Symlink("loop", filepath.Join(dir, "loop")); err != nil {
			t.Fatal(err)
		}
		_, err := Dir{Path: filepath.Join(dir, what)}.Load(t.Context())
		if problems := bundles.AsProblems(err); len(problems) != 1 || problems[0].Unreadable != want {
			t.Errorf("%s: got %+v", what, problems)
		}
	}
}
