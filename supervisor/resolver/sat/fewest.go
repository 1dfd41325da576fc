package sat

import "slices"

// reach is what the walk reached.
type reach struct {
	ids []ID
	// place is where in ids a variable is, counted from 1; 0 where it is not.
	place []int
}

func newReach(ids []ID, variables int) reach {
	r := reach{ids: ids, place: make([]int, variables)}
	for i, id := range ids {
		r.place[id] = i + 1
	}
	return r
}

// fewest drops from what the walk reached all that is not needed. Within a solution
// nothing is forbidden, so that only dependencies count here; and where every
// demand of what must stay is met by what must stay, the solver is not needed.
func (r reach) fewest(d demands, roots []ID, b *budget) ([]ID, error) {
	kept, met := r.keep(d, roots)
	if !met {
		var err error
		if kept, err = r.smallest(d, kept, roots, b); err != nil {
			return nil, err
		}
	}
	slices.Sort(kept)
	return kept, nil
}

// keep finds what every solution within the reach must take: the mandatory
// variables, the choices of their dependencies, and what is the only one there to
// meet a demand of those. It also says whether that meets all demands.
func (r reach) keep(d demands, roots []ID) (ids []ID, met bool) {
	is := make([]bool, len(r.place))
	ids = make([]ID, 0, len(r.ids))
	for _, id := range roots {
		is[id] = true
		ids = append(ids, id)
	}
	var open [][]ID
	for i := 0; i < len(ids); i++ {
		for _, others := range d.of(ids[i]) {
			first, alone := r.first(others)
			if !alone && i >= len(roots) {
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

// first is the first of others that was reached, and whether it is the only one.
func (r reach) first(others []ID) (first ID, alone bool) {
	first = -1
	for _, id := range others {
		switch {
		case r.place[id] == 0 || id == first:
		case first >= 0:
			return first, false
		default:
			first = id
		}
	}
	return first, true
}

// smallest has the solver find the smallest solution: each time one is found, a
// smaller one is asked for, until there is none. Then the walk chooses among the
// smallest.
func (r reach) smallest(d demands, kept, roots []ID, b *budget) ([]ID, error) {
	p := r.problem(d)
	needed := needs(p)
	is := make([]bool, len(r.ids))
	for _, id := range kept {
		is[r.place[id]-1] = true
		p.Constraints = append(p.Constraints, Constraint{Kind: Mandatory, Variable: r.within(id)})
	}
	var open []ID
	for i := range r.ids {
		if !is[i] {
			open = append(open, ID(i))
		}
	}
	s, err := newSearch(p, b)
	if err != nil {
		return nil, err
	}
	if err := s.shrink(open); err != nil {
		return nil, err
	}
	starts := make([]ID, len(roots))
	for i, id := range roots {
		starts[i] = r.within(id)
	}
	ids, err := s.walk(needed, starts)
	for i, id := range ids {
		ids[i] = r.ids[id]
	}
	return ids, err
}

// within is the variable of the smaller problem that stands for one of the whole.
func (r reach) within(id ID) ID { return ID(r.place[id] - 1) }

// problem states the dependencies among what was reached as a problem of its own.
func (r reach) problem(d demands) Problem {
	p := Problem{Variables: len(r.ids)}
	for i, id := range r.ids {
		for _, others := range d.of(id) {
			c := Constraint{Kind: Dependency, Variable: ID(i)}
			for _, other := range others {
				if r.place[other] > 0 {
					c.Others = append(c.Others, r.within(other))
				}
			}
			p.Constraints = append(p.Constraints, c)
		}
	}
	return p
}

// shrink finds how few of the open variables a solution can take, and lets the
// search go on among those that take no more.
func (s *search) shrink(open []ID) error {
	if sorterSize(len(open)) > maxLiterals {
		return &LimitError{Bound: "literals of encoded constraints", Allowed: maxLiterals}
	}
	if _, err := s.ask(); err != nil {
		return err
	}
	counter := s.sorter(distinct(open))
	for {
		count := 0
		for _, id := range open {
			if s.model[id] {
				count++
			}
		}
		s.clause(counter.atMost(count))
		if count == 0 {
			return nil
		}
		smaller, err := s.ask(counter.atMost(count - 1))
		if err != nil || !smaller {
			return err
		}
	}
}
