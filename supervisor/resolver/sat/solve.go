package sat

import (
	"context"
	"slices"
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
// *LimitError. A step is a question that is put to the solver, or, of a question
// that takes long, 5 ms of working at it.
func Solve(ctx context.Context, p Problem, steps int) ([]ID, error) {
	if err := p.validate(); err != nil {
		return nil, err
	}
	budget := &budget{ctx: ctx, allowed: steps}
	search, err := newSearch(p, budget)
	if err != nil {
		return nil, err
	}
	if ok, err := search.ask(); err != nil {
		return nil, err
	} else if !ok {
		return nil, explain(p, budget)
	}
	demands, roots := needs(p), mandatory(p)
	reached, err := search.walk(demands, roots)
	if err != nil {
		return nil, err
	}
	return newReach(reached, p.Variables).fewest(demands, roots, budget)
}

// mandatory lists the variables that must be taken, in the order of their
// constraints.
func mandatory(p Problem) []ID {
	var ids []ID
	seen := make([]bool, p.Variables)
	for _, c := range p.Constraints {
		if c.Kind == Mandatory && !seen[c.Variable] {
			seen[c.Variable] = true
			ids = append(ids, c.Variable)
		}
	}
	return ids
}

// demands are the dependencies of each variable: for every Dependency constraint,
// in order, the IDs of which one must be taken.
type demands struct {
	start  []int
	others [][]ID
}

// of lists what a variable depends upon.
func (d demands) of(id ID) [][]ID { return d.others[d.start[id]:d.start[id+1]] }

// needs sorts the dependencies of a problem by variable.
func needs(p Problem) demands {
	d := demands{start: make([]int, p.Variables+2)}
	total := 0
	for _, c := range p.Constraints {
		if c.demands() {
			d.start[c.Variable+2]++
			total++
		}
	}
	for i := 2; i < len(d.start); i++ {
		d.start[i] += d.start[i-1]
	}
	d.others = make([][]ID, total)
	for _, c := range p.Constraints {
		if c.demands() {
			d.others[d.start[c.Variable+1]] = c.Others
			d.start[c.Variable+1]++
		}
	}
	return d
}

// walk follows the best choices from the roots, and gives all that it reaches, the
// roots first. The constraints must be known to have a solution.
func (s *search) walk(d demands, roots []ID) ([]ID, error) {
	queue := slices.Clone(roots)
	seen := make([]bool, s.variables)
	for _, id := range roots {
		seen[id] = true
	}
	for i := 0; i < len(queue); i++ {
		for _, others := range d.of(queue[i]) {
			id, err := s.choose(others)
			if err != nil {
				return nil, err
			}
			if !seen[id] {
				seen[id] = true
				queue = append(queue, id)
			}
		}
	}
	return queue, nil
}
