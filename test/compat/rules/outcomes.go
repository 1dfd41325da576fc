package rules

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
)

// OLMVersion is the version of OLM that the suite runs.
const OLMVersion = "v0.46.0"

// Outcome is the result of a case.
type Outcome string

// The outcomes of a case.
const (
	Passed  Outcome = "pass"
	Failed  Outcome = "fail"
	Skipped Outcome = "skip"
)

// Expected returns the outcome of the rule's case with OLM.
func (r Rule) Expected() Outcome {
	switch {
	case r.Untried != "":
		return Skipped
	case r.Difference != "":
		return Failed
	default:
		return Passed
	}
}

// Unexpected compares the outcomes with OLM, by rule ID, with the rules. Each problem names a rule and what to do.
func Unexpected(outcomes map[string]Outcome) []string {
	var problems []string
	known := map[string]bool{}
	for _, g := range All() {
		for _, r := range g.Rules {
			known[r.ID] = true
			if remedy := r.remedy(outcomes[r.ID]); remedy != "" {
				problems = append(problems, r.ID+" "+remedy)
			}
		}
	}
	for _, id := range slices.Sorted(maps.Keys(outcomes)) {
		if !known[id] && outcomes[id] == Failed {
			problems = append(problems, fmt.Sprintf("%s failed and is no rule: read its output.", id))
		}
	}
	return problems
}

// ruleID matches the ID of a rule.
var ruleID = regexp.MustCompile(`^[A-Z](\d|-)`)

// Problems compares the outcomes with the supervisor, by rule ID, with the rules of groups. If only a part of the
// cases ran, a rule without a case is no problem, unless no case ran. Each problem says what to do.
func Problems(groups []Group, outcomes map[string]Outcome, part bool) []string {
	var problems []string
	known := map[string]bool{}
	if part && !anyCase(outcomes) {
		problems = append(problems, "No case ran: correct the pattern of the cases to run.")
	}
	for _, g := range groups {
		for _, r := range g.Rules {
			known[r.ID] = true
			switch seen := outcomes[r.ID]; {
			case seen == Failed:
				problems = append(problems, r.ID+" failed: read its output.")
			case seen == "" && !part:
				problems = append(problems, r.ID+" has no result: add a case, or read why it did not run.")
			}
		}
	}
	for _, id := range slices.Sorted(maps.Keys(outcomes)) {
		switch {
		case known[id]:
		case ruleID.MatchString(id):
			problems = append(problems, id+" has no rule: add one, or remove the case.")
		case outcomes[id] == Failed:
			problems = append(problems, id+" failed and is no rule: read its output.")
		}
	}
	return problems
}

// anyCase reports whether a case has an outcome.
func anyCase(outcomes map[string]Outcome) bool {
	for id := range outcomes {
		if ruleID.MatchString(id) {
			return true
		}
	}
	return false
}

// remedy returns what to do about an outcome, or an empty text if it is expected.
func (r Rule) remedy(seen Outcome) string {
	switch want := r.Expected(); {
	case seen == want, seen == "" && want == Skipped:
		return ""
	case seen == "":
		return "has no result: run its case, or set Untried."
	case want == Skipped:
		return "ran, although its rule is Untried: remove Untried."
	case seen == Passed:
		return "passed, although its rule has a Difference: remove Difference and Reason, or let the case check the difference."
	case seen == Failed:
		return "failed: correct the case, or give its rule a Difference and a Reason."
	default:
		return "was skipped: run its case, or set Untried."
	}
}
