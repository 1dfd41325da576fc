package image

import (
	"archive/tar"
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// FuzzLayers applies two layers of arbitrary bytes. It checks for files outside the directory,
// links that lead out of it, and wrong counts.
func FuzzLayers(f *testing.F) {
	seed := func(entries ...entry) []byte {
		var out bytes.Buffer
		w := tar.NewWriter(&out)
		for _, e := range entries {
			header := &tar.Header{Name: e.name, Linkname: e.link, Typeflag: e.kind, Size: int64(len(e.text)), Mode: 0o600}
			if err := w.WriteHeader(header); err != nil {
				f.Fatal(err)
			}
			if _, err := w.Write([]byte(e.text)); err != nil {
				f.Fatal(err)
			}
		}
		return out.Bytes()
	}
	file := entry{name: "configs/a/c", text: "1", kind: tar.TypeReg}
	f.Add(seed(file), seed(entry{name: "configs/.wh.a", kind: tar.TypeReg}))
	f.Add(seed(file, entry{name: "configs/l", link: "a/c", kind: tar.TypeSymlink}), seed(entry{name: "configs/a/.wh..wh..opq", kind: tar.TypeReg}))
	f.Add(seed(file, entry{name: "configs/l", link: "../x", kind: tar.TypeSymlink}), seed(entry{name: "configs/l/x", kind: tar.TypeDir}))
	f.Add(seed(file, entry{name: "configs/h", link: "configs/a/c", kind: tar.TypeLink}), seed(entry{name: "configs/a", kind: tar.TypeReg}))
	f.Add(seed(file), seed(entry{name: "configs", link: "/", kind: tar.TypeSymlink}, entry{name: "configs/../../x", kind: tar.TypeReg}))
	f.Fuzz(func(t *testing.T, lower, upper []byte) {
		parent := t.TempDir()
		dir := filepath.Join(parent, "content")
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		root, err := os.OpenRoot(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer root.Close()
		limits := (&Limits{MaxBytes: 1 << 16, MaxUnpackedBytes: 1 << 18, MaxFiles: 100, MaxEntries: 200}).withDefaults()
		grown, left := newTree(root, "configs", &limits), limits.MaxUnpackedBytes
		for _, layer := range [][]byte{lower, upper} {
			grown.begin()
			if err := entries(t.Context(), bytes.NewReader(layer), &left, limits.MaxUnpackedBytes, grown.apply); err != nil {
				break
			}
		}
		if all, err := os.ReadDir(parent); err != nil || len(all) != 1 {
			t.Errorf("written outside: %v, %v", all, err)
		}
		checkGrown(t, dir, grown)
	})
}

// checkGrown compares a directory with the nodes of its tree.
func checkGrown(t *testing.T, dir string, grown *tree) {
	t.Helper()
	seen := 0
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || name == dir {
			return err
		}
		seen++
		local, err := filepath.Rel(dir, name)
		if err != nil {
			return err
		}
		if _, ok := grown.nodes[local]; !ok {
			t.Errorf("%q is not known", local)
		}
		if d.Type()&fs.ModeSymlink == 0 {
			return nil
		}
		// Only existing targets can be followed. A loop has no target.
		if target, err := filepath.EvalSymlinks(name); err == nil && target != dir && !strings.HasPrefix(target, dir+"/") {
			t.Errorf("%q leads out to %q", local, target)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	// A failed entry is in the nodes but not in the directory.
	if seen > len(grown.nodes) || seen < len(grown.nodes)-1 || grown.bytes > grown.limits.MaxBytes {
		t.Errorf("%d of %d known files are there, %d bytes", seen, len(grown.nodes), grown.bytes)
	}
}
