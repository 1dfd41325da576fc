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
	// conclusionsPerPause is the number of conclusions after which gini can be paused; that is some ten milliseconds
	// of work.
	conclusionsPerPause = 20_000
	// pausesPerQuestion bounds a single question. It bounds work, not time: a problem exceeds it on a slow machine
	// only if it does so on a fast one.
	pausesPerQuestion = 200
	// pauseSteps is the cost of a pause. A question that ends before the first pause takes some ten microseconds.
	pauseSteps = 25
)

// Allowance is a number of steps that several searches share.
type Allowance struct{ steps, used int }

// NewAllowance returns an Allowance of a number of steps.
func NewAllowance(steps int) *Allowance { return &Allowance{steps: steps} }

// budget bounds all parts of a search together.
type budget struct {
	*Allowance

	ctx context.Context //nolint:containedctx // it lives as long as one call of Solve
	// conclusions are the conclusions of attempts that are not charged yet.
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

// spendFor charges the steps for conclusions that were undone.
func (b *budget) spendFor(conclusions int) error {
	for b.conclusions += conclusions; b.conclusions >= conclusionsPerPause; b.conclusions -= conclusionsPerPause {
		if err := b.spend(pauseSteps); err != nil {
			return err
		}
	}
	return nil
}

// search asks the solver questions about a problem.
type search struct {
	*encoding

	budget *budget
	// core are the literals of the last assumption that left no solution.
	core []z.Lit
	// unsatisfiable is true if there is no solution, whatever is assumed.
	unsatisfiable bool
}

// solve reports whether there is a solution in which the assumed literals are true. The running solver is paused
// as often as possible, to check whether it may continue. When solve returns, the solver has stopped.
//
// A solver that has found that there is no solution at all is not asked again. gini loses that result
// (internal/xo: cleanupSolve derives an empty clause without noting it), and ends the process if it then finds
// an invalid model.
func (s *search) solve(assumed ...z.Lit) (bool, error) {
	if err := s.budget.spend(1); err != nil {
		return false, err
	}
	if s.unsatisfiable {
		s.core = nil
		return false, nil
	}
	s.rewind()
	s.solver.Assume(assumed...)
	result, err := s.wait(s.solver.GoSolve())
	if err == nil && result < 0 {
		s.core = s.solver.Why(nil)
		s.unsatisfiable = len(s.core) == 0
	}
	return result > 0, err
}

// wait returns the solver's answer, which is positive for a solution.
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

// shortestPrefix returns the length of the shortest prefix of the literals that leaves no solution together with
// assumed. All literals together must leave none. The solver's own reasons save questions: only the literals up to
// the last involved one need a check. The reasons do not change the result, so it does not depend on the order
// of the solver's search.
func (s *search) shortestPrefix(assumed, literals []z.Lit) (int, error) {
	solvable, end, step := -1, len(literals), 1
	for try := end; solvable < end-1; {
		ok, err := s.solve(slices.Concat(assumed, literals[:try])...)
		switch {
		case err != nil:
			return 0, err
		case ok && try == len(literals):
			return 0, errors.New("the solver contradicts itself: what must have no solution has one")
		case ok:
			solvable = try
			try = (solvable + 1 + end) / 2
		default:
			end = s.coreEnd(literals[:try])
			try = max(end-step, solvable+1)
			step *= 2
		}
	}
	return end, nil
}

// coreEnd returns the length of the shortest prefix of the literals that includes all involved ones. They are
// involved in the last answer, which was that there is no solution.
func (s *search) coreEnd(literals []z.Lit) int {
	core := make(map[z.Lit]bool, len(s.core))
	for _, lit := range s.core {
		core[lit] = true
	}
	for i := len(literals); i > 0; i-- {
		if core[literals[i-1]] {
			return i
		}
	}
	return 0
}
