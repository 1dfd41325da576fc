package sat

import (
	"slices"

	"github.com/go-air/gini/z"
)

// explain determines which constraints leave no solution, and returns them as an *UnsatisfiableError.
//
// It finds the shortest prefix of the list of constraints that has no solution: its last constraint is a cause.
// It then keeps that constraint and finds the shortest prefix again, until the kept ones alone have no
// solution. The result is a minimal set, and always the same one.
func explain(p Problem, b *budget) error {
	e, guards := encodeGuarded(p)
	s := &search{encoding: e, budget: b}
	var core []int
	var assumed []z.Lit
	for {
		end, err := s.shortestPrefix(assumed, guards)
		if err != nil {
			return err
		}
		if end == 0 {
			slices.Reverse(core)
			return &UnsatisfiableError{Constraints: core}
		}
		core = append(core, end-1)
		assumed = append(assumed, guards[end-1])
		guards = guards[:end-1]
	}
}
