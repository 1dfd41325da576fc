package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// files returns the files below a directory with their contents.
func files(t *testing.T, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
		if err != nil || info.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		name, _ := filepath.Rel(dir, path)
		found[name] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestCopyContent(t *testing.T) {
	image, volume := t.TempDir(), filepath.Join(t.TempDir(), "deep", "catalog")
	for name, text := range map[string]string{
		"configs/lamp/catalog.yaml": "lamp", "configs/fan/catalog.json": "fan", "configs/.indexignore": "*.txt", "elsewhere/one.yaml": "one", "etc/passwd": "secret",
	} {
		path := filepath.Join(image, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{"configs/linked.yaml": "../elsewhere/one.yaml", "configs/more": "../elsewhere"} {
		if err := os.Symlink(to, filepath.Join(image, link)); err != nil {
			t.Fatal(err)
		}
	}
	// An interrupted attempt leaves part of a file.
	if err := os.MkdirAll(volume, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(volume, "linked.yaml.part"), []byte("half of it"), 0o600); err != nil {
		t.Fatal(err)
	}
	o := copyOptions{catalogFrom: filepath.Join(image, "configs"), catalogTo: volume}
	want := map[string]string{
		"lamp/catalog.yaml": "lamp", "fan/catalog.json": "fan", ".indexignore": "*.txt", "linked.yaml": "one", "more/one.yaml": "one",
	}
	for range 2 {
		if err := o.run(); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, files(t, volume)); diff != "" {
			t.Errorf("copied (-want +got):\n%s", diff)
		}
	}
	info, err := os.Stat(filepath.Join(volume, "lamp", "catalog.yaml"))
	if err != nil || info.Mode().Perm() != 0o644 {
		t.Errorf("others cannot read what was copied: %v, %v", info.Mode(), err)
	}
}

func TestCopyProgram(t *testing.T) {
	to := filepath.Join(t.TempDir(), "registry")
	if err := (&copyOptions{programTo: to}).run(); err != nil {
		t.Fatal(err)
	}
	own, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.Stat(own)
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.Stat(to)
	if err != nil || got.Size() != want.Size() || got.Mode().Perm() != 0o755 {
		t.Errorf("copied %v, %v", got, err)
	}
}

func TestCopyContentErrors(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	loop := filepath.Join(dir, "loop")
	if err := os.Mkdir(loop, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(".", filepath.Join(loop, "again")); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		copyOptions

		reason string
		want   string
	}{
		{copyOptions: copyOptions{}, reason: "nothing", want: "nothing to copy"},
		{copyOptions: copyOptions{catalogFrom: dir}, reason: "half", want: "go together"},
		{copyOptions: copyOptions{catalogFrom: filepath.Join(dir, "gone"), catalogTo: dir}, reason: "not there", want: "name the directory of the image that contains the file-based catalog"},
		{copyOptions: copyOptions{catalogFrom: file, catalogTo: dir}, reason: "a file", want: "is not a directory"},
		{copyOptions: copyOptions{catalogFrom: loop, catalogTo: filepath.Join(file, "below")}, reason: "nowhere to copy to", want: "copying the catalog"},
		{copyOptions: copyOptions{catalogFrom: loop, catalogTo: filepath.Join(dir, "to")}, reason: "no end", want: "is a link to a directory, inside a linked directory"},
		{copyOptions: copyOptions{programTo: filepath.Join(dir, "gone", "registry")}, reason: "no place for the program", want: "--program.to"},
	} {
		if err := tt.run(); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: error %v, want %q", tt.reason, err, tt.want)
		}
	}
}
