package sat

// attempt is a walk that takes at each choice the first that nothing taken so far
// excludes, directly or by leaving what it needs without choice. What it passes
// over is in no solution that shares its choices up to there; so where it comes to
// its end, what it has taken is the solution that is looked for, and no search is
// needed. Where it comes to nothing, it is a guess that the search corrects.
type attempt struct {
	*relations

	// state says of a variable that it is taken (1) or barred (-1).
	state []int8
	// left is how many choices a Dependency still has, and for an AtMost how many
	// may still be taken.
	left []int
	// taken are the variables in the order they were taken, the roots first.
	taken []ID
	// barred are those whose consequences are not drawn yet.
	barred []ID
	// failed says that something taken is left without what it needs.
	failed bool
}

// try walks, and never takes what is refuted.
func (r *relations) try(refuted []ID) *attempt {
	a := &attempt{
		relations: r,
		state:     make([]int8, r.Variables),
		left:      make([]int, len(r.Constraints)),
		taken:     make([]ID, 0, 2*len(r.roots)),
	}
	for i, c := range r.Constraints {
		a.left[i] = len(c.Others)
		if c.Kind == AtMost {
			a.left[i] = c.Limit
		}
	}
	for _, id := range r.never {
		a.bar(id)
	}
	for _, id := range refuted {
		a.bar(id)
	}
	a.conclude()
	for _, id := range r.roots {
		a.take(id)
	}
	for i := 0; i < len(a.taken) && !a.failed; i++ {
		for _, c := range r.needs.of(a.taken[i]) {
			a.choose(r.Constraints[c].Others)
		}
	}
	return a
}

// choices are what was taken besides the roots.
func (a *attempt) choices() []ID {
	if len(a.taken) < len(a.roots) {
		return nil
	}
	return a.taken[len(a.roots):]
}

// choose takes the first of others that is not barred.
func (a *attempt) choose(others []ID) {
	for _, id := range others {
		if a.state[id] >= 0 {
			a.take(id)
			return
		}
	}
	a.failed = true
}

// take takes a variable, and draws the consequences.
func (a *attempt) take(id ID) {
	if a.failed || a.state[id] > 0 {
		return
	}
	if a.state[id] < 0 {
		a.failed = true
		return
	}
	a.state[id] = 1
	a.taken = append(a.taken, id)
	for _, other := range a.excludes.of(id) {
		if ID(other) != id {
			a.bar(ID(other))
		}
	}
	for _, group := range a.groups.of(id) {
		a.left[group]--
		if a.left[group] > 0 {
			continue
		}
		for _, other := range a.Constraints[group].Others {
			if a.state[other] == 0 {
				a.bar(other)
			}
		}
	}
	a.conclude()
}

// bar notes that a variable cannot be taken any more.
func (a *attempt) bar(id ID) {
	if a.state[id] > 0 {
		a.failed = true
	}
	if a.state[id] == 0 {
		a.state[id] = -1
		a.barred = append(a.barred, id)
	}
}

// conclude bars what needs something of which all is barred.
func (a *attempt) conclude() {
	for len(a.barred) > 0 {
		id := a.barred[len(a.barred)-1]
		a.barred = a.barred[:len(a.barred)-1]
		for _, c := range a.meets.of(id) {
			a.left[c]--
			if a.left[c] == 0 {
				a.bar(a.Constraints[c].Variable)
			}
		}
	}
}
