package sat

// relations are the constraints of a problem, indexed by variable.
type relations struct {
	Problem

	// roots are the mandatory variables, in the order of their constraints.
	roots []ID
	// never are the variables that cannot be taken in any solution.
	never []ID
	// needs are the Dependency constraints of a variable, in order. meets are those that have the variable among
	// Others.
	needs, meets lists
	// excludes are the variables that a variable conflicts with, and groups the AtMost constraints that include it.
	excludes, groups lists
}

// lists holds a list for each variable: of constraints, by index, or of variables.
type lists struct {
	start, items []int32
}

func (l lists) of(id ID) []int32 { return l.items[l.start[id]:l.start[id+1]] }

// pairList collects pairs of a variable and an item of its list.
type pairList []struct{ of, item int32 }

func (p pairList) add(id ID, item int) pairList {
	return append(p, struct{ of, item int32 }{int32(id), int32(item)}) //nolint:gosec // bounded limits both
}

// lists sorts the pairs by variable, and preserves their order within each.
func (p pairList) lists(variables int) lists {
	l := lists{start: make([]int32, variables+2), items: make([]int32, len(p))}
	for _, pair := range p {
		l.start[pair.of+2]++
	}
	for i := 2; i < len(l.start); i++ {
		l.start[i] += l.start[i-1]
	}
	for _, pair := range p {
		at := &l.start[pair.of+1]
		l.items[*at] = pair.item
		*at++
	}
	return l
}

// newRelations builds the index of a problem. Mandatory and Prohibited need no lists.
func newRelations(p Problem) *relations {
	r := &relations{Problem: p}
	r.collectRoots()
	r.indexDependencies()
	r.indexExclusions()
	return r
}

// collectRoots collects the variables that are taken in every solution, and those that are in none.
func (r *relations) collectRoots() {
	required := make([]bool, r.Variables)
	for _, c := range r.Constraints {
		switch {
		case c.Kind == Mandatory && !required[c.Variable]:
			required[c.Variable] = true
			r.roots = append(r.roots, c.Variable)
		case c.Kind == Prohibited, c.Kind == Dependency && len(c.Others) == 0:
			r.never = append(r.never, c.Variable)
		case c.Kind == AtMost && c.Limit == 0:
			r.never = append(r.never, c.Others...)
		}
	}
}

func (r *relations) indexDependencies() {
	total := 0
	for _, c := range r.Constraints {
		if c.Kind == Dependency {
			total += len(c.Others)
		}
	}
	var needs pairList
	meets := make(pairList, 0, total)
	for i, c := range r.Constraints {
		if !c.demands() {
			continue
		}
		needs = needs.add(c.Variable, i)
		for _, other := range c.Others {
			meets = meets.add(other, i)
		}
	}
	r.needs, r.meets = needs.lists(r.Variables), meets.lists(r.Variables)
}

func (r *relations) indexExclusions() {
	var excludes, groups pairList
	seen := make([]int, r.Variables) // the last constraint that includes a variable, from 1
	for i, c := range r.Constraints {
		switch {
		case c.Kind == Conflict:
			for _, other := range c.Others {
				excludes = excludes.add(c.Variable, int(other))
				excludes = excludes.add(other, int(c.Variable))
			}
		case c.Kind == AtMost && c.Limit > 0 && c.Limit < len(c.Others):
			for _, other := range c.Others {
				if seen[other] != i+1 {
					seen[other] = i + 1
					groups = groups.add(other, i)
				}
			}
		}
	}
	r.excludes, r.groups = excludes.lists(r.Variables), groups.lists(r.Variables)
}
