package discovery

import (
	"fmt"
	"slices"
	"testing"
)

// A combination is one answer to each probe, including those that are not sent.
type combination struct {
	incomplete, withOperator bool
	resource, discovery      Answer
	backend                  Backend
	operator                 OperatorState
}

func (c combination) String() string {
	form := "Complete"
	if c.incomplete {
		form = "Incomplete"
	}
	operator := c.operator
	if !c.withOperator {
		operator = "none"
	}
	return fmt.Sprintf("%s/resource=%s,discovery=%s,APIService=%s,operator=%s", form, c.resource, c.discovery, c.backend, operator)
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
		for _, operator := range operatorStates {
			all = append(all, combination{withOperator: true, resource: resource, discovery: OK, backend: BackendUp, operator: operator})
		}
	}
	return all
}

// situationOf returns the only situation of a combination. A probe that is not sent matches any answer. The
// operator is not probed if the API cannot be listed.
func situationOf(t *testing.T, c combination) situation {
	t.Helper()
	var found []situation
	for _, s := range situations {
		if s.incomplete == c.incomplete && (s.withOperator == c.withOperator || c.resource != OK) &&
			matches(s.resource, c.resource) && matches(s.discovery, c.discovery) && matches(s.backend, c.backend) &&
			matches(s.operator, c.operator) {
			found = append(found, s)
		}
	}
	if len(found) != 1 {
		t.Fatalf("%d situations match %v", len(found), c)
	}
	return found[0]
}

func matches[T comparable](answers []T, answer T) bool {
	return len(answers) == 0 || slices.Contains(answers, answer)
}

// walk answers the probes of the machine from a combination. It returns the verdict and the probes.
func walk(t *testing.T, setting Setting, c combination) (Verdict, []Probe) {
	t.Helper()
	f := Facts{Incomplete: c.incomplete, WithOperator: c.withOperator}
	var sent []Probe
	for {
		step := Next(setting, f)
		if step.Probe == ProbeNone {
			return step.Verdict, sent
		}
		if slices.Contains(sent, step.Probe) {
			t.Fatalf("%v: %s is sent twice", c, step.Probe)
		}
		sent = append(sent, step.Probe)
		switch step.Probe {
		case ProbeResource:
			f.Resource = c.resource
		case ProbeDiscovery:
			f.Discovery = c.discovery
		case ProbeBackend:
			f.Backend = c.backend
		case ProbeOperator:
			f.Operator = c.operator
		case ProbeUser:
			f.UserProbed = true
		case ProbeNone:
		}
	}
}

// probes returns the probes of a situation, in their order.
func (s situation) probes() []Probe {
	var needed []Probe
	add := func(probe Probe, is bool) {
		if is {
			needed = append(needed, probe)
		}
	}
	add(ProbeDiscovery, s.incomplete)
	add(ProbeResource, len(s.resource) > 0)
	add(ProbeDiscovery, !s.incomplete && len(s.discovery) > 0)
	add(ProbeBackend, len(s.backend) > 0)
	add(ProbeOperator, len(s.operator) > 0)
	add(ProbeUser, s.want.Outcome == Forbidden)
	return needed
}

func TestNext(t *testing.T) {
	for _, c := range combinations() {
		for _, setting := range []Setting{Auto, Required} {
			t.Run(fmt.Sprintf("%v/%v", setting, c), func(t *testing.T) {
				s := situationOf(t, c)
				got, sent := walk(t, setting, c)
				if got != s.want {
					t.Errorf("%s: %v, want %v", s.reason, got, s.want)
				}
				if want := s.probes(); !slices.Equal(sent, want) {
					t.Errorf("%s: probes %q, want %q", s.reason, sent, want)
				}
			})
		}
		got, sent := walk(t, Disabled, c)
		if want := (Verdict{Skipped, ReasonDisabled}); got != want || len(sent) > 0 {
			t.Errorf("disabled, %v: %v after the probes %q, want %v without probes", c, got, sent, want)
		}
	}
}

// TestReasonsHaveSentences checks that the table contains every reason. Each must have a sentence and, unless it
// describes a success, a remedy.
func TestReasonsHaveSentences(t *testing.T) {
	reached := map[Reason]Outcome{ReasonDisabled: Skipped}
	for _, s := range situations {
		reached[s.want.Reason] = s.want.Outcome
	}
	for reason := range sentences {
		if _, ok := reached[reason]; !ok {
			t.Errorf("no situation has reason %s", reason)
		}
	}
	for reason, outcome := range reached {
		sentence, ok := sentences[reason]
		fine := outcome == Installed || outcome == Skipped
		if !ok || (sentence.remedy == "") != fine {
			t.Errorf("%s (%s) has the sentence %+v", reason, outcome, sentence)
		}
	}
}
