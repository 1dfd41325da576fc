package sat_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/chandlery/chandlery/supervisor/resolution/sat"
)

// pigeons returns a problem without a solution that no solver of this type can decide quickly. Each pigeon
// needs a hole, there is one hole fewer than pigeons, and each hole has room for one.
func pigeons(holes int) sat.Problem {
	hole := func(pigeon, n int) sat.ID { return sat.ID(holes + 1 + pigeon*holes + n) }
	p := sat.Problem{Variables: (holes + 1) * (holes + 1)}
	for pigeon := range holes + 1 {
		c := sat.Constraint{Kind: sat.Dependency, Variable: sat.ID(pigeon)}
		for n := range holes {
			c.Others = append(c.Others, hole(pigeon, n))
		}
		p.Constraints = append(p.Constraints, sat.Constraint{Kind: sat.Mandatory, Variable: sat.ID(pigeon)}, c)
	}
	for n := range holes {
		c := sat.Constraint{Kind: sat.AtMost, Limit: 1}
		for pigeon := range holes + 1 {
			c.Others = append(c.Others, hole(pigeon, n))
		}
		p.Constraints = append(p.Constraints, c)
	}
	return p
}

func TestSearchEndsAtItsLimitOfSteps(t *testing.T) {
	const allowed = 20
	_, err := sat.Solve(ctx, pigeons(40), allowed)
	if limit, ok := errors.AsType[*sat.LimitError](err); !ok || limit.Allowed != allowed {
		t.Fatalf("got %v, want a LimitError of %d steps", err, allowed)
	}
	for _, want := range []string{"20 steps", "given up"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error %q does not say %q", err, want)
		}
	}
}

func TestSearchEndsWithItsContext(t *testing.T) {
	cancelled, cancel := context.WithCancel(ctx)
	var since time.Time
	timer := time.AfterFunc(50*time.Millisecond, func() { since = time.Now(); cancel() })
	defer timer.Stop()
	_, err := sat.Solve(cancelled, pigeons(40), 1_000_000)
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v, want that it was cancelled", err)
	}
	late := time.Since(since)
	t.Logf("ended %v after the context", late)
	if late > time.Second {
		t.Errorf("ended %v after the context, want some 20 ms", late)
	}
}

// wide returns a problem that needs no question, only much work. Each of many variables excludes all of many
// others, of which one is needed.
func wide(n int) sat.Problem {
	choices, excluded := make([]sat.ID, n), make([]sat.ID, n)
	for i := range n {
		choices[i], excluded[i] = sat.ID(1+i), sat.ID(1+n+i)
	}
	p := sat.Problem{Variables: 2*n + 1, Constraints: []sat.Constraint{
		{Kind: sat.Mandatory},
		{Kind: sat.Dependency, Others: choices},
		{Kind: sat.Dependency, Others: excluded},
	}}
	for _, choice := range choices {
		p.Constraints = append(p.Constraints, sat.Constraint{Kind: sat.Conflict, Variable: choice, Others: excluded})
	}
	return p
}

func TestWorkWithoutQuestionsIsLimitedToo(t *testing.T) {
	_, err := sat.Solve(ctx, wide(600), 5)
	if limit, ok := errors.AsType[*sat.LimitError](err); !ok || limit.Allowed != 5 {
		t.Fatalf("got %v, want a LimitError of 5 steps", err)
	}
}

func TestTooLargeAProblemIsRefused(t *testing.T) {
	others := make([]sat.ID, 1<<20)
	p := sat.Problem{Variables: 1 << 20}
	for i := range others {
		others[i] = sat.ID(i)
	}
	for range 3 {
		p.Constraints = append(p.Constraints, sat.Constraint{Kind: sat.AtMost, Limit: 9, Others: others})
	}
	_, err := sat.Solve(ctx, p, enough)
	if _, ok := errors.AsType[*sat.LimitError](err); !ok {
		t.Fatalf("got %v, want a LimitError", err)
	}
}
