package sat

import (
	"slices"

	"github.com/go-air/gini/z"
)

// explain finds which constraints leave no solution, as an *UnsatisfiableError.
//
// It looks for the shortest beginning of the list of constraints that has no
// solution: its last one is to blame. With that one held, it looks for the shortest
// beginning again, and so on until those that are held have no solution by
// themselves. That makes a minimal set, and always the same one.
func explain(p Problem, b *budget) error {
	e, guards := encodeGuarded(p)
	s := &search{encoding: e, budget: b}
	var blamed []int
	var held []z.Lit
	for {
		end, err := s.shortest(held, guards)
		if err != nil {
			return err
		}
		if end == 0 {
			slices.Reverse(blamed)
			return &UnsatisfiableError{Constraints: blamed}
		}
		blamed = append(blamed, end-1)
		held = append(held, guards[end-1])
		guards = guards[:end-1]
	}
}
