package sat

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/go-air/gini/z"
)

// pausesPerQuestion bounds a single question, at some ten milliseconds each. The
// solver can be paused whenever it has drawn 20000 conclusions, so that this bounds
// its work, not its time: a problem meets the bound on a slow machine if it does on
// a fast one.
const pausesPerQuestion = 200

// budget is what a search may use, all its parts together.
type budget struct {
	ctx     context.Context //nolint:containedctx // it lives as long as one call of Solve
	allowed int
	used    int
}

// spend takes a step.
func (b *budget) spend() error {
	if err := b.ctx.Err(); err != nil {
		return fmt.Errorf("search for a solution: %w", err)
	}
	if b.used >= b.allowed {
		return &LimitError{Bound: "steps", Allowed: b.allowed}
	}
	b.used++
	return nil
}

// search puts questions about a problem to the solver.
type search struct {
	*encoding

	budget *budget
}

// ask says whether there is a solution where what is assumed is true. While the
// solver works, it is paused as often as it can be, to see whether it may go on;
// when ask returns it has come to its end.
func (s *search) ask(assumed ...z.Lit) (bool, error) {
	if err := s.budget.spend(); err != nil {
		return false, err
	}
	s.solver.Assume(assumed...)
	answer := s.solver.GoSolve()
	for range pausesPerQuestion {
		result, paused := answer.Pause()
		if !paused {
			return result > 0, nil
		}
		err := s.budget.spend()
		answer.Unpause()
		if err != nil {
			answer.Stop()
			return false, err
		}
	}
	answer.Stop()
	return false, &LimitError{Bound: "steps for a single question", Allowed: pausesPerQuestion}
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
	why := make(map[z.Lit]bool)
	for _, lit := range s.solver.Why(nil) {
		why[lit] = true
	}
	for i := len(literals); i > 0; i-- {
		if why[literals[i-1]] {
			return i
		}
	}
	return 0
}
