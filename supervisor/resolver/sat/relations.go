package sat

// relations are the constraints of a problem, looked up by variable.
type relations struct {
	Problem

	// roots are the mandatory variables, in the order of their constraints.
	roots []ID
	// never are the variables that cannot be taken whatever else is.
	never []ID
	// needs are the Dependency constraints of a variable, in order, and meets
	// those among whose others it is.
	needs, meets lists
	// excludes are the variables that a variable conflicts with, and groups the
	// AtMost constraints that it counts in.
	excludes, groups lists
}

// lists is a list for each variable: of constraints, by index, or of variables.
type lists struct {
	start, items []int
}

func (l lists) of(id ID) []int { return l.items[l.start[id]:l.start[id+1]] }

// pairing collects what is to be in the list of which variable.
type pairing struct {
	of    []ID
	items []int
}

func (p *pairing) add(id ID, item int) {
	p.of = append(p.of, id)
	p.items = append(p.items, item)
}

// lists sorts the pairs by variable; within one they keep their order.
func (p *pairing) lists(variables int) lists {
	l := lists{start: make([]int, variables+2), items: make([]int, len(p.items))}
	for _, id := range p.of {
		l.start[id+2]++
	}
	for i := 2; i < len(l.start); i++ {
		l.start[i] += l.start[i-1]
	}
	for i, id := range p.of {
		l.items[l.start[id+1]] = p.items[i]
		l.start[id+1]++
	}
	return l
}

func relate(p Problem) *relations {
	r := &relations{Problem: p}
	var needs, meets, excludes, groups pairing
	seen := make([]int, p.Variables) // the last constraint that counted a variable, from 1
	required := make([]bool, p.Variables)
	for i, c := range p.Constraints {
		switch {
		case c.Kind == Mandatory && !required[c.Variable]:
			required[c.Variable] = true
			r.roots = append(r.roots, c.Variable)
		case c.Kind == Prohibited:
			r.never = append(r.never, c.Variable)
		case c.demands():
			needs.add(c.Variable, i)
			for _, other := range c.Others {
				meets.add(other, i)
			}
			if len(c.Others) == 0 {
				r.never = append(r.never, c.Variable)
			}
		case c.Kind == Conflict:
			for _, other := range c.Others {
				excludes.add(c.Variable, int(other))
				excludes.add(other, int(c.Variable))
			}
		case c.Kind == AtMost && c.Limit == 0:
			r.never = append(r.never, c.Others...)
		case c.Kind == AtMost && c.Limit < len(c.Others):
			for _, other := range c.Others {
				if seen[other] != i+1 {
					seen[other] = i + 1
					groups.add(other, i)
				}
			}
		}
	}
	r.needs, r.meets = needs.lists(p.Variables), meets.lists(p.Variables)
	r.excludes, r.groups = excludes.lists(p.Variables), groups.lists(p.Variables)
	return r
}
