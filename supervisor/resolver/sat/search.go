package sat

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/go-air/gini/inter"
	"github.com/go-air/gini/z"
)

const (
	// conclusionsPerPause is after how many conclusions gini can be paused; that is
	// some ten milliseconds of work.
	conclusionsPerPause = 20_000
	// pausesPerQuestion bounds a single question. It bounds work, not time: a
	// problem meets the bound on a slow machine if it does on a fast one.
	pausesPerQuestion = 200
	// pauseSteps is what a pause costs, for a question that ends before the first
	// one takes some ten microseconds.
	pauseSteps = 25
)

// Allowance is a number of steps that several searches share.
type Allowance struct{ steps, used int }

// NewAllowance allows so many steps.
func NewAllowance(steps int) *Allowance { return &Allowance{steps: steps} }

// budget is what a search may use, all its parts together.
type budget struct {
	*Allowance

	ctx context.Context //nolint:containedctx // it lives as long as one call of Solve
	// conclusions are those of attempts that make up no step yet.
	conclusions int
}

// spend takes steps.
func (b *budget) spend(steps int) error {
	if err := b.ctx.Err(); err != nil {
		return fmt.Errorf("search for a solution: %w", err)
	}
	if b.used+steps > b.steps {
		b.used = b.steps
		return &LimitError{Bound: "steps", Allowed: b.steps}
	}
	b.used += steps
	return nil
}

// spendFor takes the steps that conclusions are worth that were drawn in vain.
func (b *budget) spendFor(conclusions int) error {
	for b.conclusions += conclusions; b.conclusions >= conclusionsPerPause; b.conclusions -= conclusionsPerPause {
		if err := b.spend(pauseSteps); err != nil {
			return err
		}
	}
	return nil
}

// search puts questions about a problem to the solver.
type search struct {
	*encoding

	budget *budget
	// why are those of the literals assumed last that left no solution.
	why []z.Lit
	// none says that there is no solution, whatever is assumed.
	none bool
}

// ask says whether there is a solution where what is assumed is true. While the
// solver works, it is paused as often as it can be, to see whether it may go on;
// when ask returns it has come to its end.
//
// A solver that has found that there is no solution at all is not asked again: gini
// forgets that (internal/xo: cleanupSolve derives an empty clause without noting it),
// and ends the process when it then comes upon a model that is none.
func (s *search) ask(assumed ...z.Lit) (bool, error) {
	if err := s.budget.spend(1); err != nil {
		return false, err
	}
	if s.none {
		s.why = nil
		return false, nil
	}
	s.rewind()
	s.solver.Assume(assumed...)
	result, err := s.wait(s.solver.GoSolve())
	if err == nil && result < 0 {
		s.why = s.solver.Why(nil)
		s.none = len(s.why) == 0
	}
	return result > 0, err
}

// wait gives the solver's answer, which is positive for a solution.
func (s *search) wait(answer inter.Solve) (int, error) {
	for range pausesPerQuestion {
		result, paused := answer.Pause()
		if !paused {
			return result, nil
		}
		err := s.budget.spend(pauseSteps)
		answer.Unpause()
		if err != nil {
			answer.Stop()
			return 0, err
		}
	}
	answer.Stop()
	return 0, &LimitError{Bound: "steps for a single question", Allowed: pausesPerQuestion}
}

// shortest finds how many of the literals, from the first on, leave no solution
// when they and what is held are true; all of them together must leave none. The
// solver's own reasons save questions: only the literals up to the last one that
// took part need to be looked at. They do not change what is found, so that it is
// the same whatever the solver comes upon first.
func (s *search) shortest(held, literals []z.Lit) (int, error) {
	solvable, end, step := -1, len(literals), 1
	for try := end; solvable < end-1; {
		ok, err := s.ask(slices.Concat(held, literals[:try])...)
		switch {
		case err != nil:
			return 0, err
		case ok && try == len(literals):
			return 0, errors.New("the solver contradicts itself: what must have no solution has one")
		case ok:
			solvable = try
			try = (solvable + 1 + end) / 2
		default:
			end = s.involved(literals[:try])
			try = max(end-step, solvable+1)
			step *= 2
		}
	}
	return end, nil
}

// involved is how many of the literals, from the first on, took part in the last
// answer, which was that there is no solution.
func (s *search) involved(literals []z.Lit) int {
	why := make(map[z.Lit]bool, len(s.why))
	for _, lit := range s.why {
		why[lit] = true
	}
	for i := len(literals); i > 0; i-- {
		if why[literals[i-1]] {
			return i
		}
	}
	return 0
}
