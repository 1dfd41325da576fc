package sat

import "fmt"

// UnsatisfiableError reports that a problem has no solution, and why.
type UnsatisfiableError struct {
	// Constraints are the indexes, ascending, of constraints that together leave no solution, although all but any
	// one of them leave some. Of all such sets it is the one with the smallest highest index. Among those, it is the
	// one with the smallest second highest index, and so on. The first constraints of a problem thus count as causes
	// before later ones.
	Constraints []int
}

// Error returns a message with the indexes of the constraints.
func (e *UnsatisfiableError) Error() string {
	return fmt.Sprintf("no solution: the constraints %v exclude each other", e.Constraints)
}

// LimitError reports that a search was stopped at a limit.
type LimitError struct {
	// Bound is the name of the limit, and Allowed its value.
	Bound   string
	Allowed int
}

// Error returns a message with the limit and the remedy.
func (e *LimitError) Error() string {
	return fmt.Sprintf("the search for a solution was given up: it takes more than the %d %s that are allowed; "+
		"a problem with fewer choices takes fewer", e.Allowed, e.Bound)
}
