package image

import (
	"archive/tar"
	"fmt"
	"net/http"
	"os"
	"testing"
	"time"
)

// TestManyWhiteouts applies the largest number of whiteouts in a layer to the largest number of
// files in a tree. Each whiteout once scanned all files.
func TestManyWhiteouts(t *testing.T) {
	const files, whiteouts = 10_000, 100_000
	limits := (&Limits{MaxFiles: files + 1_000, MaxEntries: files + whiteouts}).withDefaults()
	for name, test := range map[string]struct {
		reason string
		// before reports whether a lower layer has the files.
		before bool
		name   func(i int) string
		left   int
	}{
		"OpaqueSameLayer": {"files of the same layer stay", false, func(int) string { return "configs/d/.wh..wh..opq" }, files},
		"OpaqueLower":     {"files of the layer below go, once", true, func(int) string { return "configs/d/.wh..wh..opq" }, 0},
		"OpaqueRoot":      {"the tree itself", false, func(int) string { return "configs/.wh..wh..opq" }, files},
		"OpaqueElsewhere": {"directories without files", false, func(i int) string { return fmt.Sprintf("configs/x%d/.wh..wh..opq", i) }, files},
		"Whiteout":        {"a directory that the layer itself made", false, func(int) string { return "configs/.wh.d" }, files},
	} {
		t.Run(name, func(t *testing.T) {
			root, err := os.OpenRoot(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			defer root.Close()
			grown := newTree(root, "configs", &limits)
			grown.begin()
			began := time.Now()
			for i := range files {
				if err := grown.apply(&tar.Header{Name: fmt.Sprintf("configs/d/%d/f%d", i%100, i), Typeflag: tar.TypeReg}, http.NoBody); err != nil {
					t.Fatal(err)
				}
			}
			if test.before {
				grown.begin()
			}
			writing := time.Since(began)
			began = time.Now()
			for i := range whiteouts {
				if err := grown.apply(&tar.Header{Name: test.name(i), Typeflag: tar.TypeReg}, http.NoBody); err != nil {
					t.Fatal(err)
				}
			}
			// A scan of all files for each whiteout takes much longer.
			if took := time.Since(began); took > 10*writing {
				t.Errorf("%s: %d whiteouts took %s, and %d files %s", test.reason, whiteouts, took, files, writing)
			}
			if left, _, err := grown.result(); test.left > 0 && (err != nil || left != test.left) || test.left == 0 && left > 0 {
				t.Errorf("%s: %d files are left, %v; want %d", test.reason, left, err, test.left)
			}
		})
	}
}
