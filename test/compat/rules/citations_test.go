package rules_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/chandlery/chandlery/test/compat/rules"
)

// decisions is the folder of the decision records.
const decisions = "../../../docs/decisions"

// smallerDifferences is the number of the decision with a table of rules.
const smallerDifferences = "39"

// cited matches the numbers of decisions at the end of a reason, such as "(decisions 24 and 39)".
var cited = regexp.MustCompile(`\(decisions? (\d+)(?: and (\d+))?\)\.?$`)

// TestCitations checks that each kept difference names an existing decision, and that decision 39 lists the rules that
// name it.
func TestCitations(t *testing.T) {
	t.Parallel()
	listed := listedRules(t)
	for _, g := range rules.All() {
		for _, r := range g.Rules {
			if r.Difference == "" {
				continue
			}
			numbers := cited.FindStringSubmatch(r.Reason)
			if numbers == nil {
				t.Errorf("the reason of %s does not end in a decision: %s", r.ID, r.Reason)
				continue
			}
			for _, number := range slices.DeleteFunc(numbers[1:], func(s string) bool { return s == "" }) {
				found, err := filepath.Glob(filepath.Join(decisions, strings.Repeat("0", 4-len(number))+number+"-*.md"))
				if err != nil || len(found) != 1 {
					t.Errorf("%s names decision %s, which is in the files %v (%v)", r.ID, number, found, err)
				}
				if number == smallerDifferences && !slices.ContainsFunc(listed, func(id string) bool { return r.ID == id || strings.HasPrefix(r.ID, id+"-") }) {
					t.Errorf("decision %s does not list %s", number, r.ID)
				}
			}
		}
	}
	for _, id := range listed {
		if !differs(id) {
			t.Errorf("decision %s lists %s, which is no rule with a difference", smallerDifferences, id)
		}
	}
}

// listedRules returns the first column of the table in the decision about smaller differences.
func listedRules(t *testing.T) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(decisions, "00"+smallerDifferences+"-*.md"))
	if err != nil || len(found) != 1 {
		t.Fatalf("the decision is in the files %v (%v)", found, err)
	}
	text, err := os.ReadFile(found[0])
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for line := range strings.Lines(string(text)) {
		if cells := strings.Split(line, "|"); len(cells) > 2 && !strings.HasPrefix(cells[1], "-") && cells[1] != " Rule " {
			ids = append(ids, strings.Split(strings.TrimSpace(cells[1]), ", ")...)
		}
	}
	return ids
}

// differs reports whether a rule, or a variant of it, has a difference.
func differs(id string) bool {
	for _, g := range rules.All() {
		if slices.ContainsFunc(g.Rules, func(r rules.Rule) bool {
			return r.Difference != "" && (r.ID == id || strings.HasPrefix(r.ID, id+"-"))
		}) {
			return true
		}
	}
	return false
}
