package compat_test

import (
	"os"
	"testing"

	"github.com/chandlery/chandlery/test/compat/compattest"
	"github.com/chandlery/chandlery/test/compat/rules"
	"github.com/chandlery/chandlery/test/oracle/olmpeer"
)

func TestMain(m *testing.M) { os.Exit(compattest.Main(m)) }

// TestOLMVersion checks that the rules name the version of OLM that the suite builds.
func TestOLMVersion(t *testing.T) {
	t.Parallel()
	got, err := olmpeer.Version()
	if err != nil {
		t.Fatal(err)
	}
	if got != rules.OLMVersion {
		t.Errorf("the suite builds OLM %s, and the rules name %s: run make compat-olm and correct them", got, rules.OLMVersion)
	}
}

// TestRules checks that the list of rules is complete and consistent.
func TestRules(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, g := range rules.All() {
		for _, r := range g.Rules {
			switch {
			case seen[r.ID]:
				t.Errorf("two rules have the ID %s", r.ID)
			case r.ID[:1] != g.Letter:
				t.Errorf("rule %s is in group %s", r.ID, g.Letter)
			case r.Given == "" || r.Then == "":
				t.Errorf("rule %s has no situation or no result", r.ID)
			case (r.Difference == "") != (r.Reason == ""):
				t.Errorf("rule %s needs both a difference and a reason, or neither", r.ID)
			}
			seen[r.ID] = true
		}
	}
}
