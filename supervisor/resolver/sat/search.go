package sat

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-air/gini/z"
)

const (
	// slice is how long the solver works at a question before it is looked whether
	// to go on. It looks at the clock itself, every 20000 propagations, so that no
	// goroutine is needed that would have to be stopped. What it has learned in a
	// slice it keeps for the next.
	slice = 5 * time.Millisecond
	// slicesPerQuestion bounds a single question, to two seconds of work: the
	// conflicts that it meets cannot be counted from outside the solver.
	slicesPerQuestion = 400
)

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

// ask says whether there is a solution where what is assumed is true.
func (s *search) ask(assumed ...z.Lit) (bool, error) {
	for range slicesPerQuestion {
		if err := s.budget.spend(); err != nil {
			return false, err
		}
		s.solver.Assume(assumed...)
		if answer := s.solver.Try(slice); answer != 0 {
			return answer > 0, nil
		}
	}
	return false, &LimitError{Bound: "steps for a single question", Allowed: slicesPerQuestion}
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
