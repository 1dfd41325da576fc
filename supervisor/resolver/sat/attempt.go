package sat

import "slices"

// attempt is a walk that takes at each choice the first from which no contradiction
// follows, as far as that shows by what is left with one choice or with none. What
// it passes over is in no solution that shares its choices up to there; so where it
// comes to its end, what it has taken is the solution that is looked for, and no
// search is needed. Where it comes to nothing, it is a guess that the search
// corrects.
type attempt struct {
	*relations

	// state says of a variable that it is open, barred, due or taken.
	state []state
	// left is how many choices a Dependency still has, and for an AtMost how many
	// may still be taken.
	left []int
	// taken are the variables in the order they were taken, the roots first.
	taken []ID
	// barred are those whose consequences are not drawn yet, and forced those that
	// are to become due.
	barred, forced []ID
	// failed says that something that is due cannot be had.
	failed bool
	// spend takes from the budget what is to be paid for changes that were in
	// vain, and err says that it is used up.
	spend func(conclusions int) error
	err   error
	// changes are those that can be taken back.
	changes []change
}

// change is one of the state of a variable, or of what is left to a constraint.
type change struct {
	variable, constraint int32
	was                  state
}

// state is what is known of a variable. One that is due is the only choice of
// something due or taken; the walk will come to it.
type state int8

const (
	open state = iota
	barred
	due
	taken
)

// try walks, and never takes what is refuted. It ends with an error when the budget
// is used up.
func (r *relations) try(refuted []ID, b *budget) (*attempt, error) {
	a := &attempt{
		relations: r,
		spend:     b.spendFor,
		state:     make([]state, r.Variables),
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
	return a, a.err
}

// choices are what was taken besides the roots.
func (a *attempt) choices() []ID {
	if len(a.taken) < len(a.roots) {
		return nil
	}
	return a.taken[len(a.roots):]
}

// choose takes the first of others that can be taken, and bars those before it.
func (a *attempt) choose(others []ID) {
	for _, id := range others {
		if a.failed || a.state[id] == taken {
			return
		}
		if a.state[id] == barred {
			continue
		}
		a.changes = a.changes[:0]
		a.take(id)
		if !a.failed {
			return
		}
		if a.err = a.spend(len(a.changes)); a.err != nil {
			return
		}
		a.takeBack()
		a.bar(id)
		a.conclude()
	}
	a.failed = true
}

// takeBack undoes the last taking, which failed.
func (a *attempt) takeBack() {
	for _, c := range slices.Backward(a.changes) {
		if c.variable >= 0 {
			a.state[c.variable] = c.was
		} else {
			a.left[c.constraint]++
		}
	}
	a.taken = a.taken[:len(a.taken)-1]
	a.barred, a.forced, a.failed = a.barred[:0], a.forced[:0], false
}

// set changes the state of a variable.
func (a *attempt) set(id ID, to state) {
	a.changes = append(a.changes, change{variable: int32(id), was: a.state[id]}) //nolint:gosec // bounded limits it
	a.state[id] = to
}

// lessen takes one from what is left to a constraint, and gives the rest.
func (a *attempt) lessen(c int32) int {
	a.changes = append(a.changes, change{variable: -1, constraint: c})
	a.left[c]--
	return a.left[c]
}

// take takes a variable, and draws the consequences.
func (a *attempt) take(id ID) {
	if a.failed || a.state[id] == taken {
		return
	}
	a.taken = append(a.taken, id)
	a.force(id)
	a.set(id, taken)
	a.conclude()
}

// force notes that a variable is due, and what it excludes and needs.
func (a *attempt) force(id ID) {
	if a.state[id] == barred {
		a.failed = true
	}
	if a.state[id] != open {
		return
	}
	a.set(id, due)
	for _, other := range a.excludes.of(id) {
		if ID(other) != id {
			a.bar(ID(other))
		}
	}
	for _, group := range a.groups.of(id) {
		if a.lessen(group) == 0 {
			a.close(a.Constraints[group].Others)
		}
	}
	for _, c := range a.needs.of(id) {
		a.need(c)
	}
}

// close bars what is open of a group that is full.
func (a *attempt) close(others []ID) {
	for _, other := range others {
		if a.state[other] == open {
			a.bar(other)
		}
	}
}

// need forces the only choice that a Dependency of something due has left.
func (a *attempt) need(c int32) {
	if a.left[c] != 1 {
		return
	}
	for _, id := range a.Constraints[c].Others {
		if a.state[id] != barred {
			a.forced = append(a.forced, id)
			return
		}
	}
}

// bar notes that a variable cannot be taken any more.
func (a *attempt) bar(id ID) {
	switch a.state[id] {
	case open:
		a.set(id, barred)
		a.barred = append(a.barred, id)
	case due, taken:
		a.failed = true
	case barred:
	}
}

// conclude bars what needs something of which all is barred, and forces what is the
// last choice, until nothing more follows.
func (a *attempt) conclude() {
	for !a.failed {
		switch {
		case len(a.barred) > 0:
			id := a.barred[len(a.barred)-1]
			a.barred = a.barred[:len(a.barred)-1]
			for _, c := range a.meets.of(id) {
				a.lose(c)
			}
		case len(a.forced) > 0:
			id := a.forced[len(a.forced)-1]
			a.forced = a.forced[:len(a.forced)-1]
			a.force(id)
		default:
			return
		}
	}
}

// lose notes that a Dependency has one choice less.
func (a *attempt) lose(c int32) {
	left := a.lessen(c)
	of := a.Constraints[c].Variable
	switch {
	case left == 0:
		a.bar(of)
	case a.state[of] == due || a.state[of] == taken:
		a.need(c)
	}
}
