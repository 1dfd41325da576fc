package sat

import (
	"context"
	"errors"
	"fmt"
)

// Solve returns the best solution, as the IDs of the taken variables, in ascending order.
//
// A walk defines which solution is best. A queue begins with the mandatory variables, in the order of their
// constraints. Each variable of the queue is visited once. For each of its Dependency constraints in their
// order, the first of Others in a solution is appended to the queue. Its position among Others is its rank. The
// best solutions have the lexicographically smallest sequence of ranks: the choices nearest to the mandatory
// variables count most. The reached variables alone are a solution, since every other kind of constraint only
// forbids. No other variables are taken.
//
// Among the solutions within the reached variables, only those count that keep the choices for the dependencies
// of the mandatory variables. Of these, the one with the fewest variables is the best. A more distant choice is
// dropped if another taken variable meets the demand. Among several of the same size, the order of the walk
// decides again, which leaves one.
//
// If there is no solution, the error is an *UnsatisfiableError. The search ends with ctx. If steps do not
// suffice, the error is a *LimitError. A step is a question to the solver. A long question costs 25 more for
// every 20000 conclusions, which are some ten milliseconds. Conclusions that were undone without a question
// cost the same.
func Solve(ctx context.Context, p Problem, steps int) ([]ID, error) {
	return NewAllowance(steps).Solve(ctx, p)
}

// Solve does the same as the function Solve, with the remaining steps.
func (a *Allowance) Solve(ctx context.Context, p Problem) ([]ID, error) {
	ids, err := a.Find(ctx, p)
	if errors.Is(err, ErrNone) {
		return nil, explain(p, &budget{ctx: ctx, Allowance: a})
	}
	return ids, err
}

// Find does the same as Solve without an explanation: if there is no solution, the error is ErrNone. An
// explanation takes far longer than the solution.
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
	r := newRelations(p)
	w := &walk{relations: r, search: &search{budget: &budget{ctx: ctx, Allowance: a}}, most: p.Variables}
	reached, err := w.best()
	if err != nil {
		return nil, err
	}
	return w.minimize(reached)
}

// ErrNone means that a problem has no solution.
var ErrNone = errors.New("no solution")

// walk finds the best choices, in the order of a walk from the roots.
type walk struct {
	*relations

	search *search
	// most is the maximum number of variables in a solution.
	most int
}

// best returns all variables that the best walk reaches, the roots first.
//
// It makes an attempt. If that fails, the solver finds the first wrong choice. The choices before it are part
// of a solution, and with these the wrong choice is not. That choice is refuted. The next attempt makes the
// same choices up to there, and then takes the next one.
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
		end, err := w.search.shortestPrefix(nil, choices)
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
