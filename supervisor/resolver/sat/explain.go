package sat

import (
	"errors"
	"slices"

	"github.com/go-air/gini/z"
)

// explain finds which constraints leave no solution, as an *UnsatisfiableError.
//
// It looks for the shortest beginning of the list of constraints that has no
// solution: its last one is to blame. With that one held, it looks for the shortest
// beginning again, and so on until those that are held have no solution by
// themselves. That makes a minimal set, and always the same one, whatever the
// solver comes upon first. The solver's own reasons only save questions: a
// beginning needs to reach no further than the last constraint that took part.
func explain(p Problem, b *budget) error {
	e, guards, err := encodeGuarded(p)
	if err != nil {
		return err
	}
	x := &explanation{encoding: e, budget: b, guards: guards, index: make(map[z.Lit]int, len(guards))}
	for i, guard := range guards {
		x.index[guard] = i
	}
	end, err := x.reach(len(guards))
	for err == nil && end > 0 {
		end, err = x.blame(end)
	}
	if err != nil {
		return err
	}
	slices.Reverse(x.blamed)
	return &UnsatisfiableError{Constraints: x.blamed}
}

// explanation is a search for the constraints that are to blame.
type explanation struct {
	*encoding

	budget *budget
	guards []z.Lit
	index  map[z.Lit]int
	// blamed are the indexes found so far, descending; held are their guards.
	blamed []int
	held   []z.Lit
}

// errSatisfiable is the answer to a beginning that has a solution.
var errSatisfiable = errors.New("there is a solution")

// reach asks whether the first so many constraints, with those held, have no
// solution, and gives how many of them take part in that: all up to the last one
// that does.
func (x *explanation) reach(end int) (int, error) {
	assumed := slices.Concat(x.held, x.guards[:end])
	ok, err := x.budget.question(x.solver, assumed)
	if err != nil {
		return 0, err
	}
	if ok {
		return 0, errSatisfiable
	}
	last := 0
	for _, guard := range x.solver.Why(nil) {
		if i, known := x.index[guard]; known && i < end {
			last = max(last, i+1)
		}
	}
	return last, nil
}

// blame finds the shortest beginning without a solution, of those up to end, which
// has none; holds its last constraint; and gives how far to look for the next.
func (x *explanation) blame(end int) (int, error) {
	solvable := -1
	for try := end - 1; solvable < end-1; try = (solvable + 1 + end) / 2 {
		reached, err := x.reach(try)
		switch {
		case errors.Is(err, errSatisfiable):
			solvable = try
		case err != nil:
			return 0, err
		case reached == 0:
			return 0, nil
		default:
			end = reached
		}
	}
	x.blamed = append(x.blamed, end-1)
	x.held = append(x.held, x.guards[end-1])
	reached, err := x.reach(end - 1)
	if errors.Is(err, errSatisfiable) {
		return 0, errors.New("the solver contradicts itself: what had no solution has one")
	}
	return reached, err
}
