package main

import (
	"bytes"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chandlery/chandlery/test/buildcache"
	"github.com/chandlery/chandlery/test/realcatalogs"
)

// maxBytes bounds the size of the whole corpus.
const maxBytes = 300 << 10

// loadCommitted returns the folder of the module and the committed corpus.
func loadCommitted(t *testing.T) (root string, files map[string][]byte) {
	t.Helper()
	root, err := buildcache.SourceDir(".")
	if err != nil {
		t.Fatal(err)
	}
	if files, err = committed(root); err != nil {
		t.Fatal(err)
	}
	return root, files
}

func TestCorpusIsSmall(t *testing.T) {
	t.Parallel()
	root, files := loadCommitted(t)
	if len(files) < 50 {
		t.Errorf("the corpus has %d files, want at least 50", len(files))
	}
	total := 0
	for path, content := range files {
		total += len(content)
		target := filepath.Base(filepath.Dir(path))
		pkg := filepath.Join(root, filepath.Dir(path), "..", "..", "..")
		if !declares(t, pkg, target) {
			t.Errorf("%s: the package has no target %s", path, target)
		}
	}
	if total > maxBytes {
		t.Errorf("the corpus has %d bytes, want at most %d", total, maxBytes)
	}
}

// declares reports whether a test file of a folder has the fuzz target.
func declares(t *testing.T, dir, target string) bool {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	head := regexp.MustCompile(`(?m)^func ` + regexp.QuoteMeta(target) + `\(`)
	for _, path := range paths {
		source, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if head.Match(source) {
			return true
		}
	}
	return false
}

func TestCorpusIsGenerated(t *testing.T) {
	t.Parallel()
	_, files := loadCommitted(t)
	want, err := generate(t.Context())
	if errors.Is(err, realcatalogs.ErrNone) && os.Getenv("CI") == "" {
		t.Skipf("runs without the real catalogs: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(sizes(want), sizes(files)); diff != "" {
		t.Errorf("files and sizes, -generated +committed (renew them: go run ./test/fuzzcorpus):\n%s", diff)
	}
	if !maps.EqualFunc(want, files, bytes.Equal) {
		t.Error("the corpus differs from what is generated; renew it: go run ./test/fuzzcorpus")
	}
}

// sizes returns the size of each file.
func sizes(files map[string][]byte) map[string]int {
	sizes := make(map[string]int, len(files))
	for path, content := range files {
		sizes[path] = len(content)
	}
	return sizes
}
