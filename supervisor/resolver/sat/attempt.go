package sat

import "slices"

// attempt is a walk that takes, at each choice, the first alternative without a visible contradiction. It
// detects a contradiction only by constraints with one choice left or none. A skipped alternative is in no
// solution with the same choices before it. If the walk reaches its end, the taken variables are thus the
// solution, and no search is needed. If it fails, the search corrects its choices.
type attempt struct {
	*relations

	// state holds the state of each variable: open, barred, due or taken.
	state []state
	// left is the number of remaining choices of a Dependency, or the number of variables of an AtMost that may still
	// be taken.
	left []int
	// taken are the variables in the order in which they were taken, the roots first.
	taken []ID
	// barred are variables whose consequences are not derived yet, and forced are variables that will become due.
	barred, forced []ID
	// failed is true if a due variable cannot be taken.
	failed bool
	// spend charges the budget for changes that were undone. err is the error when the budget is used up.
	spend func(conclusions int) error
	err   error
	// changes are the changes that can be undone.
	changes []change
}

// change is a change of the state of a variable, or of the number left for a constraint.
type change struct {
	variable, constraint int32
	was                  state
}

// state is the state of a variable. A due variable is the only choice of a due or taken one; the walk will take
// it.
type state int8

const (
	open state = iota
	barred
	due
	taken
)

// try walks, and never takes a refuted variable. It returns an error if the budget is used up.
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

// choices returns the taken variables without the roots.
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

// takeBack undoes the last take, which failed.
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

// lessen decrements the number left for a constraint, and returns it.
func (a *attempt) lessen(c int32) int {
	a.changes = append(a.changes, change{variable: -1, constraint: c})
	a.left[c]--
	return a.left[c]
}

// take takes a variable, and derives the consequences.
func (a *attempt) take(id ID) {
	if a.failed || a.state[id] == taken {
		return
	}
	a.taken = append(a.taken, id)
	a.force(id)
	a.set(id, taken)
	a.conclude()
}

// force makes a variable due, and applies its exclusions and dependencies.
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

// close bars the open variables of a full group.
func (a *attempt) close(others []ID) {
	for _, other := range others {
		if a.state[other] == open {
			a.bar(other)
		}
	}
}

// need forces the only remaining choice of a Dependency of a due variable.
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

// bar marks a variable as one that cannot be taken any more.
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

// conclude bars variables with a dependency that has no choice left, and forces last choices, until nothing
// more follows.
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

// lose records that a Dependency has one choice less.
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
