package sat

import (
	"slices"

	"github.com/go-air/gini/z"
)

// reachedSet is the set of variables that the best walk reached.
type reachedSet struct {
	*relations

	ids []ID
	// position is the position of a variable in ids, counted from 1; 0 if it is missing.
	position []int
}

// minimize removes unneeded variables from those that the walk reached. Within a solution nothing is excluded, so
// only dependencies count. If variables that must remain meet all demands of variables that must remain, the
// solver is not needed.
func (w *walk) minimize(reached []ID) ([]ID, error) {
	r := reachedSet{relations: w.relations, ids: reached, position: make([]int, w.Variables)}
	for i, id := range reached {
		r.position[id] = i + 1
	}
	kept, met := r.required()
	if !met {
		var err error
		if kept, err = r.smallest(kept, w.search.budget); err != nil {
			return nil, err
		}
	}
	slices.Sort(kept)
	return kept, nil
}

// required returns the variables that every solution within the reach must take. These are the mandatory variables,
// the choices of their dependencies, and variables that alone meet a demand of these. It also reports whether
// they meet all demands.
func (r reachedSet) required() (ids []ID, met bool) {
	is := make([]bool, len(r.position))
	ids = make([]ID, 0, len(r.ids))
	for _, id := range r.roots {
		is[id] = true
		ids = append(ids, id)
	}
	var open [][]ID
	for i := 0; i < len(ids); i++ {
		for _, need := range r.needs.of(ids[i]) {
			others := r.Constraints[need].Others
			first, alone := r.first(others)
			if !alone && i >= len(r.roots) {
				open = append(open, others)
				continue
			}
			if !is[first] {
				is[first] = true
				ids = append(ids, first)
			}
		}
	}
	for _, others := range open {
		if !slices.ContainsFunc(others, func(id ID) bool { return is[id] }) {
			return ids, false
		}
	}
	return ids, true
}

// first returns the first of others that was reached, and reports whether it is the only one.
func (r reachedSet) first(others []ID) (first ID, alone bool) {
	first = -1
	for _, id := range others {
		switch {
		case r.position[id] == 0 || id == first:
		case first >= 0:
			return first, false
		default:
			first = id
		}
	}
	return first, true
}

// smallest finds the smallest solution with the solver. It requests a smaller one each time, until there is
// none. The walk then chooses among the smallest.
func (r reachedSet) smallest(kept []ID, b *budget) ([]ID, error) {
	p := r.problem()
	w := &walk{relations: newRelations(p), search: &search{encoding: encode(p), budget: b}}
	open := make([]bool, p.Variables)
	for i := range open {
		open[i] = true
	}
	for _, id := range kept {
		open[r.local(id)] = false
		w.search.clause(literal(r.local(id)))
	}
	more, err := w.search.minimizeCount(open)
	if err != nil {
		return nil, err
	}
	w.most = len(kept) + more
	ids, err := w.best()
	for i, id := range ids {
		ids[i] = r.ids[id]
	}
	return ids, err
}

// local returns the variable of the smaller problem for one of the whole problem.
func (r reachedSet) local(id ID) ID { return ID(r.position[id] - 1) }

// problem returns the dependencies among the reached variables as a separate problem.
func (r reachedSet) problem() Problem {
	p := Problem{Variables: len(r.ids)}
	for _, id := range r.roots {
		p.Constraints = append(p.Constraints, Constraint{Kind: Mandatory, Variable: r.local(id)})
	}
	for i, id := range r.ids {
		for _, need := range r.needs.of(id) {
			c := Constraint{Kind: Dependency, Variable: ID(i)}
			for _, other := range r.Constraints[need].Others {
				if r.position[other] > 0 {
					c.Others = append(c.Others, r.local(other))
				}
			}
			p.Constraints = append(p.Constraints, c)
		}
	}
	return p
}

// minimizeCount returns the minimum number of open variables in a solution, and restricts the search to solutions with
// that number.
func (s *search) minimizeCount(open []bool) (int, error) {
	var counted []z.Lit
	for i, is := range open {
		if is {
			counted = append(counted, literal(ID(i)))
		}
	}
	if sorterSize(len(counted)) > maxLiterals {
		return 0, tooLarge()
	}
	counter := s.sorter(counted)
	for most := len(counted); ; {
		smaller, err := s.solve(counter.atMost(most - 1))
		if err != nil {
			return 0, err
		}
		if !smaller {
			s.clause(counter.atMost(most))
			return most, nil
		}
		most = 0
		for _, lit := range counted {
			if s.solver.Value(lit) {
				most++
			}
		}
	}
}
