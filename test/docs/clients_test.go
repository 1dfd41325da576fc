package docs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestClients checks that the page for clients shows the configurations that test/clients uses, and links the programs.
func TestClients(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join(root, "docs", "clients.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"golang/main.go", "typescript/src/client.ts", "python/client.py"} {
		if !strings.Contains(string(text), "(../test/clients/"+name+")") {
			t.Errorf("docs/clients.md does not link test/clients/%s", name)
		}
	}
	for _, name := range []string{"golang/buf.gen.yaml", "typescript/buf.gen.yaml", "python/buf.gen.yaml"} {
		file, err := os.ReadFile(filepath.Join(root, "test", "clients", filepath.FromSlash(name)))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(text), "\n"+string(file)+"```\n") {
			t.Errorf("docs/clients.md does not show test/clients/%s as it is: copy it there", name)
		}
	}
}
