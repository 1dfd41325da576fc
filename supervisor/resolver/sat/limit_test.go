package sat_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/chandlery/chandlery/supervisor/resolver/sat"
)

// pigeons is a problem without solution that no solver of this kind can see
// through: pigeons that each need a hole, one hole fewer than pigeons, and no hole
// for two.
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
	var limit *sat.LimitError
	if !errors.As(err, &limit) || limit.Allowed != allowed {
		t.Fatalf("got %v, want a LimitError of %d steps", err, allowed)
	}
	for _, want := range []string{"20 steps", "allow more"} {
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
	t.Logf("ended %v after the context", time.Since(since))
}
