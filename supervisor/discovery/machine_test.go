package discovery

import (
	"fmt"
	"slices"
	"testing"
)

// A combination is one answer to each of the questions, including those that are not asked.
type combination struct {
	incomplete, withKeeper bool
	resource, discovery    Answer
	backend                Backend
	upkeep                 Upkeep
}

func (c combination) String() string {
	form := "Complete"
	if c.incomplete {
		form = "Incomplete"
	}
	upkeep := c.upkeep
	if !c.withKeeper {
		upkeep = "none"
	}
	return fmt.Sprintf("%s/resource=%s,discovery=%s,APIService=%s,keeper=%s", form, c.resource, c.discovery, c.backend, upkeep)
}

// combinations returns all combinations.
func combinations() []combination {
	var all []combination
	for _, incomplete := range []bool{false, true} {
		for _, resource := range resourceAnswers {
			for _, found := range discoveryAnswers {
				for _, backend := range backendAnswers {
					all = append(all, combination{incomplete: incomplete, resource: resource, discovery: found, backend: backend})
				}
			}
		}
	}
	for _, resource := range resourceAnswers {
		for _, upkeep := range upkeepAnswers {
			all = append(all, combination{withKeeper: true, resource: resource, discovery: OK, backend: BackendUp, upkeep: upkeep})
		}
	}
	return all
}

// situationOf returns the only situation of a combination. A question that is not asked matches any answer. The
// operator is not asked for if the API cannot be listed.
func situationOf(t *testing.T, c combination) situation {
	t.Helper()
	var found []situation
	for _, s := range situations {
		if s.incomplete == c.incomplete && (s.withKeeper == c.withKeeper || c.resource != OK) &&
			holds(s.resource, c.resource) && holds(s.discovery, c.discovery) && holds(s.backend, c.backend) &&
			holds(s.upkeep, c.upkeep) {
			found = append(found, s)
		}
	}
	if len(found) != 1 {
		t.Fatalf("%d situations hold %v", len(found), c)
	}
	return found[0]
}

func holds[T comparable](answers []T, answer T) bool {
	return len(answers) == 0 || slices.Contains(answers, answer)
}

// walk answers the machine's questions from a combination. It returns the verdict and the questions.
func walk(t *testing.T, setting Setting, c combination) (Verdict, []Question) {
	t.Helper()
	f := Facts{Incomplete: c.incomplete, WithKeeper: c.withKeeper}
	var asked []Question
	for {
		step := Next(setting, f)
		if step.Ask == AskNothing {
			return step.Verdict, asked
		}
		if slices.Contains(asked, step.Ask) {
			t.Fatalf("%v: %s is asked a second time", c, step.Ask)
		}
		asked = append(asked, step.Ask)
		switch step.Ask {
		case AskResource:
			f.Resource = c.resource
		case AskDiscovery:
			f.Discovery = c.discovery
		case AskBackend:
			f.Backend = c.backend
		case AskKeeper:
			f.Upkeep = c.upkeep
		case AskUser:
			f.UserAsked = true
		case AskNothing:
		}
	}
}

// questions returns the questions of a situation, in their order.
func (s situation) questions() []Question {
	var needed []Question
	add := func(question Question, is bool) {
		if is {
			needed = append(needed, question)
		}
	}
	add(AskDiscovery, s.incomplete)
	add(AskResource, len(s.resource) > 0)
	add(AskDiscovery, !s.incomplete && len(s.discovery) > 0)
	add(AskBackend, len(s.backend) > 0)
	add(AskKeeper, len(s.upkeep) > 0)
	add(AskUser, s.want.Outcome == Forbidden)
	return needed
}

func TestNext(t *testing.T) {
	for _, c := range combinations() {
		for _, setting := range []Setting{Auto, Required} {
			t.Run(fmt.Sprintf("%v/%v", setting, c), func(t *testing.T) {
				s := situationOf(t, c)
				got, asked := walk(t, setting, c)
				if got != s.want {
					t.Errorf("%s: %v, want %v", s.reason, got, s.want)
				}
				if want := s.questions(); !slices.Equal(asked, want) {
					t.Errorf("%s: asked %q, want %q", s.reason, asked, want)
				}
			})
		}
		got, asked := walk(t, Disabled, c)
		if want := (Verdict{Skipped, ReasonDisabled}); got != want || len(asked) > 0 {
			t.Errorf("disabled, %v: %v after asking %q, want %v after asking nothing", c, got, asked, want)
		}
	}
}

// TestReasonsAreTold checks that the table contains every reason. Each must have a sentence and, unless it
// describes a success, a remedy.
func TestReasonsAreTold(t *testing.T) {
	reached := map[Reason]Outcome{ReasonDisabled: Skipped}
	for _, s := range situations {
		reached[s.want.Reason] = s.want.Outcome
	}
	for reason := range sentences {
		if _, ok := reached[reason]; !ok {
			t.Errorf("nothing leads to %s", reason)
		}
	}
	for reason, outcome := range reached {
		told, ok := sentences[reason]
		well := outcome == Installed || outcome == Skipped
		if !ok || (told.remedy == "") != well {
			t.Errorf("%s (%s) is told as %+v", reason, outcome, told)
		}
	}
}
