package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// testFunction finds the tests and fuzz targets that a file declares.
var testFunction = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w*)\(`)

// TestActors checks that docs/security.md names at least one test for each thing that
// an actor cannot do, and that these tests exist.
func TestActors(t *testing.T) {
	t.Parallel()
	const section = "What each actor can and cannot do"
	page := pages(t)["docs/security.md"]
	declared := declaredTests(t)
	tables := 0
	for _, table := range page.Tables {
		if table.Section != section {
			continue
		}
		tables++
		for _, row := range table.Body() {
			named := spans(row.Cells[len(row.Cells)-1])
			if len(named) == 0 {
				t.Errorf("%s:%d: the row names no test", page.Path, row.Line)
			}
			for _, name := range named {
				if !declared[name] {
					t.Errorf("%s:%d: no test is named %s", page.Path, row.Line, name)
				}
			}
		}
	}
	if tables == 0 {
		t.Errorf("%s has no tables in the section %q", page.Path, section)
	}
}

// declaredTests returns the names of all tests and fuzz targets of the repository.
func declaredTests(t *testing.T) map[string]bool {
	t.Helper()
	found := map[string]bool{}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err //nolint:wrapcheck // names the file
		}
		for _, match := range testFunction.FindAllSubmatch(text, -1) {
			found[string(match[1])] = true
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}
