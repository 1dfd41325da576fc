package docs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The page for clients must show the programs that test/clients runs.
func TestClients(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join(root, "docs", "clients.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{
		"golang/buf.gen.yaml", "golang/main.go", "typescript/buf.gen.yaml", "typescript/src/client.ts",
		"python/buf.gen.yaml", "python/client.py",
	} {
		file, err := os.ReadFile(filepath.Join(root, "test", "clients", filepath.FromSlash(name)))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(text), "\n"+string(file)+"```\n") {
			t.Errorf("docs/clients.md does not show test/clients/%s as it is: copy it there", name)
		}
	}
}
