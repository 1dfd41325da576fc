package layer

import (
	"path/filepath"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// TestWrite compares a layer in a file with one in memory.
func TestWrite(t *testing.T) {
	tree := fstest.MapFS{"p/catalog.yaml": {Data: []byte("schema: olm.package\n")}, "q/catalog.json": {Data: []byte("{}")}}
	modified := time.Unix(1000, 0)
	files, err := Files(tree, "configs")
	if err != nil {
		t.Fatal(err)
	}
	written, err := Write(filepath.Join(t.TempDir(), "layer"), files, modified)
	if err != nil {
		t.Fatal(err)
	}
	entries, err := Tree(tree, "configs")
	if err != nil {
		t.Fatal(err)
	}
	want, err := New(entries, modified)
	if err != nil {
		t.Fatal(err)
	}
	wantID, err := want.DiffID()
	if err != nil {
		t.Fatal(err)
	}
	if got, err := written.DiffID(); err != nil || got != wantID {
		t.Errorf("the archives differ: %v and %v, %v", got, wantID, err)
	}
	fast, err := NewFast(entries, modified)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := fast.DiffID(); err != nil || got != wantID {
		t.Errorf("the fast archive differs: %v and %v, %v", got, wantID, err)
	}
	if err := validate.Layer(written); err != nil {
		t.Error(err)
	}
}
