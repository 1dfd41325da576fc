package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestSchemaIsCurrent checks that the committed schema is that of the CustomResourceDefinitions.
func TestSchemaIsCurrent(t *testing.T) {
	t.Parallel()
	made := filepath.Join(t.TempDir(), "schema.json")
	if err := render([]string{made}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(read(t, made), read(t, filepath.Join("..", "schema.json"))); diff != "" {
		t.Errorf("the schema is outdated; run make generate (-want +got):\n%s", diff)
	}
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
