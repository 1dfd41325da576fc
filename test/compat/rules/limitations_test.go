package rules_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chandlery/chandlery/test/compat/rules"
)

// TestClientVersions checks that the versions of clients are those that the tests build.
func TestClientVersions(t *testing.T) {
	t.Parallel()
	const root = "../../../"
	var required strings.Builder
	for _, name := range []string{"test/compat/clients", "tools/helm", "test/controlplane/binaries", "test/conformance/pkgclient"} {
		text, err := os.ReadFile(filepath.Join(root, name, "go.mod"))
		if err != nil {
			t.Fatal(err)
		}
		required.Write(text)
	}
	for _, c := range rules.Clients() {
		if c.Module == "" {
			continue
		}
		if !strings.Contains(required.String(), c.Module+"\n") && !strings.Contains(required.String(), c.Module+" // indirect\n") {
			t.Errorf("no module of the tests requires %s", c.Module)
		}
		// Version 1.37.2 of kubectl is version 0.37.2 of its module.
		if _, minor, _ := strings.Cut(c.Version, "."); !strings.HasSuffix(c.Module, minor) {
			t.Errorf("%s is of version %s, and its module is %s", c.Name, c.Version, c.Module)
		}
	}
}
