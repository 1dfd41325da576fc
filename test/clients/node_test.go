package clients

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/chandlery/chandlery/test/buildcache"
	"github.com/chandlery/chandlery/test/filelock"
)

// nodeModules returns the folder with the TypeScript client's packages. They are installed once for
// each set of versions, so only the first run needs the network.
func nodeModules(t *testing.T) string {
	t.Helper()
	root, err := buildcache.Root()
	if err != nil {
		t.Fatal(err)
	}
	files := []string{".npmrc", "package.json", "package-lock.json"}
	dir := filepath.Join(root, "typescript-client", digest(t, files))
	modules := filepath.Join(dir, "node_modules")
	if err := os.MkdirAll(filepath.Dir(dir), 0o750); err != nil {
		t.Fatal(err)
	}
	lock, err := filelock.Acquire(t.Context(), dir+".lock", func() { t.Log("waiting for another test to install the packages") })
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := lock.Release(); err != nil {
			t.Error(err)
		}
	}()
	if _, err := os.Stat(modules); err == nil {
		return modules
	} else if !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	install(t, files, dir)
	return modules
}

// install installs the packages. The folder gets its name after it is complete.
func install(t *testing.T, files []string, dir string) {
	t.Helper()
	temporary := dir + ".new"
	if err := os.RemoveAll(temporary); err != nil {
		t.Fatal(err)
	}
	copyFiles(t, "typescript", temporary, files...)
	run(t, temporary, nil, "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund")
	if err := os.Rename(temporary, dir); err != nil {
		t.Fatal(err)
	}
}

// digest returns a digest of a set of versions.
func digest(t *testing.T, files []string) string {
	t.Helper()
	h := sha256.New()
	for _, name := range files {
		data, err := os.ReadFile(filepath.Join("typescript", name))
		if err != nil {
			t.Fatal(err)
		}
		h.Write(data)
	}
	return hex.EncodeToString(h.Sum(nil))[:16]
}
