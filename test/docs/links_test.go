package docs

import (
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
)

const root = "../.."

// maxLines is the largest length of a page of docs/. A longer page must be split.
const maxLines = 600

func pages(t *testing.T) map[string]Page {
	t.Helper()
	all, err := Pages(root)
	if err != nil {
		t.Fatal(err)
	}
	byPath := map[string]Page{}
	for _, page := range all {
		byPath[page.Path] = page
	}
	if len(byPath) < 30 {
		t.Fatalf("found %d pages; the repository has more", len(byPath))
	}
	return byPath
}

// TestLinks checks the target of every relative link, and the heading if it names one.
func TestLinks(t *testing.T) {
	t.Parallel()
	all := pages(t)
	for _, page := range all {
		for _, link := range page.Links {
			if why := broken(all, page, link.Text); why != "" {
				t.Errorf("%s:%d: the link %s %s", page.Path, link.Line, link.Text, why)
			}
		}
	}
}

// broken returns the error of a link; empty for none and for links to other sites.
func broken(all map[string]Page, from Page, link string) string {
	if strings.Contains(link, "://") || strings.HasPrefix(link, "mailto:") {
		return ""
	}
	file, anchor, _ := strings.Cut(link, "#")
	target := from.Path
	if file != "" {
		target = path.Join(path.Dir(from.Path), file)
	}
	if strings.HasPrefix(target, "..") {
		return "leads out of the repository"
	}
	if _, err := os.Stat(filepath.Join(root, target)); err != nil {
		return "leads to a file that is not there"
	}
	if page, ok := all[target]; ok && anchor != "" && !page.anchors[anchor] {
		return "leads to a heading that is not there"
	}
	return ""
}

func TestBroken(t *testing.T) {
	t.Parallel()
	from := Parse("docs/decisions/0001-own-generated-api.md", "# One two\n\n# One two\n\n## `code` and: more\n")
	all := map[string]Page{from.Path: from}
	for name, tc := range map[string]struct {
		reason string
		link   string
		broken bool
	}{
		"Elsewhere":  {reason: "the web is not looked at", link: "https://example.com/nothing"},
		"File":       {reason: "a file that is there", link: "../security.md"},
		"Folder":     {reason: "folders can be shown, too", link: "../decisions/"},
		"NoFile":     {reason: "a file that is not there", link: "../nothing.md", broken: true},
		"Outside":    {reason: "what is beside the repository is not in it", link: "../../../other", broken: true},
		"Heading":    {reason: "a heading of the page itself", link: "#one-two"},
		"Second":     {reason: "headings of one text are counted", link: "#one-two-1"},
		"Signs":      {reason: "signs are left out", link: "#code-and-more"},
		"NoHeading":  {reason: "a heading that is not there", link: "#three", broken: true},
		"OfAnother":  {reason: "by the path that leads to it", link: "0001-own-generated-api.md#one-two"},
		"NotAnother": {reason: "headings of other pages are looked for, too", link: "0001-own-generated-api.md#two", broken: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := broken(all, from, tc.link); (got != "") != tc.broken {
				t.Errorf("%s: %s %q", tc.reason, tc.link, got)
			}
		})
	}
}

// TestReachable checks that links lead from the map to every page.
func TestReachable(t *testing.T) {
	t.Parallel()
	all := pages(t)
	seen := map[string]bool{}
	queue := []string{"docs/README.md"}
	for len(queue) > 0 {
		page, ok := all[queue[0]]
		queue = queue[1:]
		if !ok || seen[page.Path] {
			continue
		}
		seen[page.Path] = true
		for _, link := range page.Links {
			file, _, _ := strings.Cut(link.Text, "#")
			queue = append(queue, path.Join(path.Dir(page.Path), file))
		}
	}
	for name := range all {
		if strings.HasPrefix(name, "docs/") && !seen[name] {
			t.Errorf("%s cannot be reached from docs/README.md: link it there, or from a page that can", name)
		}
	}
}

// TestTables counts cells. A bar without an escape adds a cell.
func TestTables(t *testing.T) {
	t.Parallel()
	for name, page := range pages(t) {
		for _, table := range page.Tables {
			for _, row := range table.Body() {
				if len(row.Cells) != len(table.Header) {
					t.Errorf("%s:%d: the row has %d cells, the header %d", name, row.Line, len(row.Cells), len(table.Header))
				}
			}
		}
	}
}

// commandsPage is generated, and has a section for each command.
const commandsPage = "docs/reference/commands-kubectl-chandlery.md"

// TestLength checks the length of pages that are read as a whole.
func TestLength(t *testing.T) {
	t.Parallel()
	for name, page := range pages(t) {
		if strings.HasPrefix(name, "docs/") && name != rulesPage && name != commandsPage && page.Lines > maxLines {
			t.Errorf("%s has %d lines; make two pages of it, each of at most %d", name, page.Lines, maxLines)
		}
	}
}
