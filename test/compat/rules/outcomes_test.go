package rules_test

import (
	"strings"
	"testing"

	"github.com/chandlery/chandlery/test/compat/rules"
)

// expected returns the outcomes that the rules expect.
func expected() map[string]rules.Outcome {
	outcomes := map[string]rules.Outcome{}
	for _, g := range rules.All() {
		for _, r := range g.Rules {
			outcomes[r.ID] = r.Expected()
		}
	}
	return outcomes
}

func TestUnexpected(t *testing.T) {
	t.Parallel()
	if got := rules.Unexpected(expected()); len(got) > 0 {
		t.Errorf("problems of the expected outcomes: %q", got)
	}
	for name, test := range map[string]struct {
		id      string
		outcome rules.Outcome
		want    string
	}{
		"passes with a difference":   {"B41", rules.Passed, "B41 passed"},
		"fails without one":          {"B1", rules.Failed, "B1 failed"},
		"has no result":              {"B1", "", "B1 has no result"},
		"is skipped":                 {"B1", rules.Skipped, "B1 was skipped"},
		"runs, although it is apart": {"C29", rules.Passed, "C29 ran"},
		"is no rule":                 {"Rules", rules.Failed, "Rules failed and is no rule"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			outcomes := expected()
			outcomes[test.id] = test.outcome
			got := rules.Unexpected(outcomes)
			if len(got) != 1 || !strings.HasPrefix(got[0], test.want) {
				t.Errorf("problems are %q, want one that begins with %q", got, test.want)
			}
		})
	}
}
