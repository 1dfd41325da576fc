package informer_test

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chandlery/chandlery/supervisor/informer"
)

// row returns a watched kind as the documentation shows it.
func row(w informer.Watched) string {
	kind := w.Kind
	if w.Group != "" {
		kind += "." + w.Group
	}
	selector, bytes := "all", "none"
	if w.Selector != "" {
		selector = "`" + w.Selector + "`"
	}
	if w.Bytes > 0 {
		bytes = fmt.Sprintf("%d KiB", w.Bytes>>10)
	}
	return fmt.Sprintf("| %s | %s | %s | %s | %s | %s |", kind, w.Form, selector, w.Creator, w.Kept, bytes)
}

// item returns a kind that administrators create as the documentation lists it.
func item(w informer.Watched) string {
	var details []string
	if w.Selector != "" {
		details = append(details, "`"+w.Selector+"`")
	}
	if w.Kept != "the object" {
		details = append(details, w.Kept)
	}
	if len(details) == 0 {
		return w.Kind
	}
	return w.Kind + " (" + strings.Join(details, ": ") + ")"
}

// TestWatchedKindsAreDocumented compares the table and the list of docs/security.md with the code.
func TestWatchedKindsAreDocumented(t *testing.T) {
	text, err := os.ReadFile("../../docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	section := regexp.MustCompile(`(?s)\n## Memory\n.*?\n\|---[^\n]*\n(.*?)\n\n`).FindSubmatch(text)
	if section == nil {
		t.Fatal("docs/security.md has no table under Memory")
	}
	var want, unbounded []string
	for _, w := range informer.Watches() {
		if w.Creator == informer.ByAdministrators {
			unbounded = append(unbounded, item(w))
		} else {
			want = append(want, row(w))
		}
	}
	if list := ": " + strings.Join(unbounded, ", ") + ".\n"; !strings.Contains(string(text), list) {
		t.Errorf("docs/security.md has no list of the kinds that administrators create%s", list)
	}
	if diff := cmp.Diff(want, strings.Split(string(section[1]), "\n")); diff != "" {
		t.Errorf("table of watched kinds (-code +documentation):\n%s", diff)
	}
}
