package sat

import (
	"context"
	"errors"
	"fmt"
)

// Solve finds the best solution, as the IDs that are taken, in ascending order.
//
// Which one is best is defined by a walk. A queue begins with the variables that
// are mandatory, in the order of their constraints. Each variable of the queue is
// looked at once: for each of its Dependency constraints in their order, the first
// of Others that a solution takes is appended to the queue, and its place among
// Others is noted as a rank. Of all solutions, those come first whose sequence of
// ranks is lexicographically smallest: the choices made nearest to what is
// mandatory count most. What the walk reaches is a solution by itself, since every
// other kind of constraint only forbids; nothing besides is ever taken.
//
// Of the solutions within what the walk reached, which keep what it chose for the
// dependencies of the mandatory variables themselves, the one with the fewest
// variables is the best: a choice further away gives way where something else that
// is taken meets the demand. Among several of the same size the order of the walk
// decides again, and that leaves one.
//
// Where there is no solution the error is an *UnsatisfiableError. The search ends
// with ctx. It may take so many steps; when they do not suffice, the error is a
// *LimitError. A step is a question that is put to the solver; a question that takes
// long costs 25 more for every 20000 conclusions, which are some ten milliseconds, and
// so do conclusions that were drawn in vain without a question.
func Solve(ctx context.Context, p Problem, steps int) ([]ID, error) {
	return NewAllowance(steps).Solve(ctx, p)
}

// Solve is the function Solve with the steps that are left.
func (a *Allowance) Solve(ctx context.Context, p Problem) ([]ID, error) {
	ids, err := a.Find(ctx, p)
	if errors.Is(err, ErrNone) {
		return nil, explain(p, &budget{ctx: ctx, Allowance: a})
	}
	return ids, err
}

// Find is Solve without an explanation, which takes far longer than to find out that
// there is no solution: the error is ErrNone then.
func (a *Allowance) Find(ctx context.Context, p Problem) ([]ID, error) {
	if err := p.validate(); err != nil {
		return nil, err
	}
	if err := bounded(p); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("search for a solution: %w", err)
	}
	r := relate(p)
	w := &walk{relations: r, search: &search{budget: &budget{ctx: ctx, Allowance: a}}, most: p.Variables}
	reached, err := w.best()
	if err != nil {
		return nil, err
	}
	return w.fewest(reached)
}

// ErrNone says that a problem has no solution.
var ErrNone = errors.New("no solution")

// walk looks for the best choices, in the order of a walk from the roots.
type walk struct {
	*relations

	search *search
	// most is how many variables a solution may take.
	most int
}

// best gives all that the best walk reaches, the roots first.
//
// It makes an attempt, and where that fails has the solver find the first choice
// that was wrong: what was chosen before is part of a solution, what was chosen
// there is not, given that. So that choice is refuted, and the next attempt, which
// comes to the same choices up to there, takes the next one.
func (w *walk) best() ([]ID, error) {
	var refuted []ID
	for {
		a, err := w.try(refuted, w.search.budget)
		if err != nil {
			return nil, err
		}
		if !a.failed && len(a.taken) <= w.most {
			return a.taken, nil
		}
		if w.search.encoding == nil {
			w.search.encoding = encode(w.Problem)
		}
		choices := literals(a.choices())
		end, err := w.search.shortest(nil, choices)
		if err != nil {
			return nil, err
		}
		if end == 0 {
			return nil, ErrNone
		}
		for _, lit := range choices[:end-1] {
			w.search.clause(lit)
		}
		w.search.clause(choices[end-1].Not())
		refuted = append(refuted, a.choices()[end-1])
	}
}
