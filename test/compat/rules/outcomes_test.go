package rules_test

import (
	"slices"
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

func TestProblems(t *testing.T) {
	t.Parallel()
	groups := []rules.Group{{Letter: "I", Rules: []rules.Rule{{ID: "I1"}, {ID: "I2", Untried: "needs real nodes"}, {ID: "I3", Difference: "a", Reason: "b"}}}}
	for name, test := range map[string]struct {
		outcomes map[string]rules.Outcome
		part     bool
		want     []string
	}{
		"all have passed or were skipped": {outcomes: map[string]rules.Outcome{"I1": rules.Passed, "I2": rules.Skipped, "I3": rules.Passed, "TestRules": rules.Passed}},
		"a rule has no case": {
			outcomes: map[string]rules.Outcome{"I1": rules.Passed, "I2": rules.Passed},
			want:     []string{"I3 has no result: add a case, or read why it did not run."},
		},
		"an untried rule has no case": {
			outcomes: map[string]rules.Outcome{"I1": rules.Passed, "I3": rules.Passed},
			want:     []string{"I2 has no result: add a case, or read why it did not run."},
		},
		"only a part ran": {outcomes: map[string]rules.Outcome{"I1": rules.Passed}, part: true},
		"no case ran":     {part: true, want: []string{"No case ran: correct the pattern of the cases to run."}},
		"only another test ran": {
			outcomes: map[string]rules.Outcome{"TestSteps": rules.Passed}, part: true,
			want: []string{"No case ran: correct the pattern of the cases to run."},
		},
		"a case has no rule": {
			outcomes: map[string]rules.Outcome{"I1": rules.Passed, "I-Other": rules.Passed, "I99": rules.Skipped}, part: true,
			want: []string{"I-Other has no rule: add one, or remove the case.", "I99 has no rule: add one, or remove the case."},
		},
		"cases and another test failed": {
			outcomes: map[string]rules.Outcome{"I1": rules.Failed, "I3": rules.Failed, "TestRules": rules.Failed}, part: true,
			want: []string{"I1 failed: read its output.", "I3 failed: read its output.", "TestRules failed and is no rule: read its output."},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := rules.Problems(groups, test.outcomes, test.part); !slices.Equal(got, test.want) {
				t.Errorf("problems are %q, want %q", got, test.want)
			}
		})
	}
}
