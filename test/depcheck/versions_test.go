package depcheck_test

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/mod/modfile"

	"github.com/chandlery/chandlery/test/buildcache"
)

// TestSameVersions compares the modules that the product and the control plane share. Packages of equal modules
// are compiled once for both.
func TestSameVersions(t *testing.T) {
	t.Parallel()

	const helper = "test/controlplane/binaries/go.mod"

	root, err := buildcache.SourceDir("")
	if err != nil {
		t.Fatal(err)
	}

	product, components := versions(t, filepath.Join(root, "go.mod")), versions(t, filepath.Join(root, helper))

	shared := 0

	for path, want := range product {
		got, ok := components[path]
		if !ok {
			continue
		}

		shared++

		if got != want {
			t.Errorf("%s requires %s %s, and go.mod %s: require the same", helper, path, got, want)
		}
	}

	if shared < 50 {
		t.Errorf("product and control plane share %d modules, want at least 50", shared)
	}
}

// versions returns the version of each module that the file requires or replaces.
func versions(t *testing.T, name string) map[string]string {
	t.Helper()

	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}

	file, err := modfile.Parse(name, data, nil)
	if err != nil {
		t.Fatal(err)
	}

	out := map[string]string{}
	for _, r := range file.Require {
		out[r.Mod.Path] = r.Mod.Version
	}

	for _, r := range file.Replace {
		if r.New.Version != "" {
			out[r.Old.Path] = r.New.Version
		}
	}

	return out
}
