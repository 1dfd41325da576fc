package sat

import "fmt"

// UnsatisfiableError says that a problem has no solution, and why.
type UnsatisfiableError struct {
	// Constraints are the indexes, ascending, of constraints of the problem that
	// together leave no solution, though all but any one of them leave some. Of
	// all such sets it is the one with the smallest highest index; of those
	// alike, the one with the smallest second highest, and so on: what comes
	// first in a problem is blamed before what comes later.
	Constraints []int
}

// Error names the constraints by their indexes.
func (e *UnsatisfiableError) Error() string {
	return fmt.Sprintf("no solution: the constraints %v exclude each other", e.Constraints)
}

// LimitError says that a search was given up, and which bound it met.
type LimitError struct {
	// Bound names what is bounded, and Allowed how much of it there may be.
	Bound   string
	Allowed int
}

// Error says what was allowed and what helps.
func (e *LimitError) Error() string {
	return fmt.Sprintf("the search for a solution was given up: it takes more than the %d %s that are allowed; "+
		"a problem with fewer choices takes fewer", e.Allowed, e.Bound)
}
