package sat_test

import (
	"cmp"
	"slices"

	"github.com/chandlery/chandlery/supervisor/resolution/sat"
)

// The oracle solves small problems by trying every set of variables. It follows the documentation of Solve, and
// shares no code with it.

// set is a set of variables, as bits.
type set uint64

func (s set) has(id sat.ID) bool { return s>>uint(id)&1 == 1 }

func (s set) size() int {
	n := 0
	for ; s != 0; s &= s - 1 {
		n++
	}
	return n
}

func (s set) ids() []sat.ID {
	ids := []sat.ID{}
	for id := sat.ID(0); s>>uint(id) != 0; id++ {
		if s.has(id) {
			ids = append(ids, id)
		}
	}
	return ids
}

func setOf(ids []sat.ID) set {
	s := set(0)
	for _, id := range ids {
		s |= 1 << uint(id)
	}
	return s
}

// meets reports whether a set satisfies a constraint.
func (s set) meets(c sat.Constraint) bool {
	others := setOf(c.Others)
	switch c.Kind {
	case sat.Mandatory:
		return s.has(c.Variable)
	case sat.Prohibited:
		return !s.has(c.Variable)
	case sat.Dependency:
		return !s.has(c.Variable) || s&others != 0
	case sat.Conflict:
		return !s.has(c.Variable) || s&(others&^(1<<uint(c.Variable))) == 0
	case sat.AtMost:
		return (s & others).size() <= c.Limit
	default:
		return false
	}
}

func (s set) meetsAll(constraints []sat.Constraint) bool {
	for _, c := range constraints {
		if !s.meets(c) {
			return false
		}
	}
	return true
}

// walked is the state of a walk through a solution.
type walked struct {
	ranks   []int
	reached set
	// roots are the choices for the dependencies of the mandatory variables.
	roots set
}

func walk(p sat.Problem, solution set) walked {
	var queue []sat.ID
	w := walked{}
	for _, c := range p.Constraints {
		if c.Kind == sat.Mandatory && !w.reached.has(c.Variable) {
			queue = append(queue, c.Variable)
			w.reached |= 1 << uint(c.Variable)
		}
	}
	mandatory := len(queue)
	for i := 0; i < len(queue); i++ {
		for _, c := range p.Constraints {
			if c.Kind != sat.Dependency || c.Variable != queue[i] || slices.Contains(c.Others, c.Variable) {
				continue
			}
			rank := slices.IndexFunc(c.Others, solution.has)
			w.ranks = append(w.ranks, rank)
			chosen := c.Others[rank]
			if i < mandatory {
				w.roots |= 1 << uint(chosen)
			}
			if !w.reached.has(chosen) {
				w.reached |= 1 << uint(chosen)
				queue = append(queue, chosen)
			}
		}
	}
	return w
}

// best returns the best solution of a problem, and reports whether there is one.
func best(p sat.Problem) (set, bool) {
	solutions := solutions(p)
	if len(solutions) == 0 {
		return 0, false
	}
	first := slices.MinFunc(solutions, func(a, b set) int {
		return slices.Compare(walk(p, a).ranks, walk(p, b).ranks)
	})
	reach := walk(p, first)
	var within []set
	for _, s := range solutions {
		if s&^reach.reached == 0 && s&reach.roots == reach.roots {
			within = append(within, s)
		}
	}
	return slices.MinFunc(within, func(a, b set) int {
		return cmp.Or(
			cmp.Compare(a.size(), b.size()),
			slices.Compare(walk(p, a).ranks, walk(p, b).ranks),
			slices.Compare(a.ids(), b.ids()),
		)
	}), true
}

func solutions(p sat.Problem) []set {
	var found []set
	for s := range set(1) << uint(p.Variables) {
		if s.meetsAll(p.Constraints) {
			found = append(found, s)
		}
	}
	return found
}

// blame returns the set of constraints that explains why there is no solution. Of the minimal sets, it is the
// one with the smallest highest index, and so on.
func blame(p sat.Problem) []int {
	// From the last constraint down, each constraint that is not needed is removed.
	kept := make([]int, len(p.Constraints))
	for i := range kept {
		kept[i] = i
	}
	for i := range slices.Backward(p.Constraints) {
		at := slices.Index(kept, i)
		without := slices.Delete(slices.Clone(kept), at, at+1)
		if !solvable(p, without) {
			kept = without
		}
	}
	return kept
}

func solvable(p sat.Problem, indexes []int) bool {
	part := sat.Problem{Variables: p.Variables}
	for _, i := range indexes {
		part.Constraints = append(part.Constraints, p.Constraints[i])
	}
	return len(solutions(part)) > 0
}
