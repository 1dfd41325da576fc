package document

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSections(t *testing.T) {
	origin := Origin{Commit: "abc, changed", Programs: []string{"./cmd/x", "./bench/x"}}
	page := "# Page\n\ntext\n\n## One\n\nmake bench-x ARGS=1\n\n<!-- bench-x: begin -->\n" + origin.String() +
		"\n\n### Part\n\n## Written\n\n| a |\n<!-- bench-x: end -->\n\n## Two\n\nmake bench-y\n\n| b |\n\n" +
		"## Three\n\nmake bench-z\n\n<!-- bench-z: begin -->\nnone\n<!-- bench-z: end -->\n"
	want := []Section{
		{Title: "Page"},
		{Title: "One", Command: "make bench-x ARGS=1", Origin: origin, Tables: true, Marked: true},
		{Title: "Two", Command: "make bench-y", Tables: true},
		{Title: "Three", Command: "make bench-z", Marked: true},
	}
	if diff := cmp.Diff(want, Sections(page)); diff != "" {
		t.Errorf("Sections(): -want +got:\n%s", diff)
	}
}

// TestPublishedFigures checks that every section with a table in the measurement pages names the
// measured programs.
func TestPublishedFigures(t *testing.T) {
	pages, err := filepath.Glob("../../docs/measurements*.md")
	if err != nil || len(pages) == 0 {
		t.Fatalf("no pages: %v", err)
	}
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, section := range Sections(string(text)) {
			if section.Tables && (section.Origin.Commit == "" || section.Command == "") {
				t.Errorf("%s, %q has a table, and lacks the comment <!-- measured at COMMIT: PROGRAMS --> or the command", page, section.Title)
			}
		}
	}
}
