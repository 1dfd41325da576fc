package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// testFunction matches the tests and fuzz targets in a file.
var testFunction = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w*)\(`)

// actors are the headings of the tables that docs/security.md must have.
var actors = []string{
	"anonymous-network-client", "tenant-with-view-in-one-namespace", "tenant-with-edit-in-one-namespace", "tenant-with-admin-in-one-namespace",
	"author-of-a-bundle-in-a-bounded-group", "author-of-a-bundle-in-a-group-for-all-namespaces", "author-of-a-catalog", "node",
}

// TestActors checks that docs/security.md has a table for each actor. Each row must have a reason
// why the actor cannot do something, and at least one test, whose name no other test has.
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
			if len(row.Cells) != 3 || strings.TrimSpace(row.Cells[0]) == "" || strings.TrimSpace(row.Cells[1]) == "" {
				t.Errorf("%s:%d: the row has to say what the actor cannot do, because of what, and name tests", page.Path, row.Line)
			}
			named := spans(row.Cells[len(row.Cells)-1])
			if len(named) == 0 {
				t.Errorf("%s:%d: the row names no test", page.Path, row.Line)
			}
			for _, name := range named {
				if n := declared[name]; n != 1 {
					t.Errorf("%s:%d: %d tests are named %s, want 1", page.Path, row.Line, n, name)
				}
			}
		}
	}
	for _, actor := range actors {
		if !page.anchors[actor] {
			t.Errorf("%s has no heading #%s", page.Path, actor)
		}
	}
	if tables < len(actors) {
		t.Errorf("%s has %d tables in the section %q, for %d actors", page.Path, tables, section, len(actors))
	}
}

// declaredTests returns how many tests and fuzz targets of the repository have a name.
func declaredTests(t *testing.T) map[string]int {
	t.Helper()
	found := map[string]int{}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err //nolint:wrapcheck // names the file
		}
		for _, match := range testFunction.FindAllSubmatch(text, -1) {
			found[string(match[1])]++
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}
