package sat

import "slices"

// attempt is a walk that takes, at each choice, the first alternative without a visible contradiction. It
// detects a contradiction only by constraints with one choice left or none. A skipped alternative is in no
// solution with the same choices before it. If the walk reaches its end, the taken variables are thus the
// solution, and no search is needed. If it fails, the search corrects its choices.
type attempt struct {
	*relations

	// state holds the state of each variable: open, forbidden, due or taken.
	state []state
	// left is the number of remaining choices of a Dependency, or the number of variables of an AtMost that may still
	// be taken.
	left []int
	// taken are the variables in the order in which they were taken, the roots first.
	taken []ID
	// forbidden are variables whose consequences are not derived yet, and implied are variables that will become due.
	forbidden, implied []ID
	// failed is true if a due variable cannot be taken.
	failed bool
	// spend charges the budget for changes that were undone. err is the error when the budget is used up.
	spend func(conclusions int) error
	err   error
	// trail holds the changes that can be undone.
	trail []change
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
	forbidden
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
		a.forbid(id)
	}
	for _, id := range refuted {
		a.forbid(id)
	}
	a.propagate()
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

// choose takes the first of others that can be taken, and forbids those before it.
func (a *attempt) choose(others []ID) {
	for _, id := range others {
		if a.failed || a.state[id] == taken {
			return
		}
		if a.state[id] == forbidden {
			continue
		}
		a.trail = a.trail[:0]
		a.take(id)
		if !a.failed {
			return
		}
		if a.err = a.spend(len(a.trail)); a.err != nil {
			return
		}
		a.backtrack()
		a.forbid(id)
		a.propagate()
	}
	a.failed = true
}

// backtrack undoes the last take, which failed.
func (a *attempt) backtrack() {
	for _, c := range slices.Backward(a.trail) {
		if c.variable >= 0 {
			a.state[c.variable] = c.was
		} else {
			a.left[c.constraint]++
		}
	}
	a.taken = a.taken[:len(a.taken)-1]
	a.forbidden, a.implied, a.failed = a.forbidden[:0], a.implied[:0], false
}

// set changes the state of a variable.
func (a *attempt) set(id ID, to state) {
	a.trail = append(a.trail, change{variable: int32(id), was: a.state[id]}) //nolint:gosec // bounded limits it
	a.state[id] = to
}

// decrement decrements the number left for a constraint, and returns it.
func (a *attempt) decrement(c int32) int {
	a.trail = append(a.trail, change{variable: -1, constraint: c})
	a.left[c]--
	return a.left[c]
}

// take takes a variable, and derives the consequences.
func (a *attempt) take(id ID) {
	if a.failed || a.state[id] == taken {
		return
	}
	a.taken = append(a.taken, id)
	a.imply(id)
	a.set(id, taken)
	a.propagate()
}

// imply makes a variable due, and applies its exclusions and dependencies.
func (a *attempt) imply(id ID) {
	if a.state[id] == forbidden {
		a.failed = true
	}
	if a.state[id] != open {
		return
	}
	a.set(id, due)
	for _, other := range a.excludes.of(id) {
		if ID(other) != id {
			a.forbid(ID(other))
		}
	}
	for _, group := range a.groups.of(id) {
		if a.decrement(group) == 0 {
			a.closeGroup(a.Constraints[group].Others)
		}
	}
	for _, c := range a.needs.of(id) {
		a.implyLast(c)
	}
}

// closeGroup forbids the open variables of a full group.
func (a *attempt) closeGroup(others []ID) {
	for _, other := range others {
		if a.state[other] == open {
			a.forbid(other)
		}
	}
}

// implyLast implies the only remaining choice of a Dependency of a due variable.
func (a *attempt) implyLast(c int32) {
	if a.left[c] != 1 {
		return
	}
	for _, id := range a.Constraints[c].Others {
		if a.state[id] != forbidden {
			a.implied = append(a.implied, id)
			return
		}
	}
}

// forbid marks a variable as one that cannot be taken any more.
func (a *attempt) forbid(id ID) {
	switch a.state[id] {
	case open:
		a.set(id, forbidden)
		a.forbidden = append(a.forbidden, id)
	case due, taken:
		a.failed = true
	case forbidden:
	}
}

// propagate forbids variables with a dependency that has no choice left, and implies last choices, until nothing
// more follows.
func (a *attempt) propagate() {
	for !a.failed {
		switch {
		case len(a.forbidden) > 0:
			id := a.forbidden[len(a.forbidden)-1]
			a.forbidden = a.forbidden[:len(a.forbidden)-1]
			for _, c := range a.meets.of(id) {
				a.removeChoice(c)
			}
		case len(a.implied) > 0:
			id := a.implied[len(a.implied)-1]
			a.implied = a.implied[:len(a.implied)-1]
			a.imply(id)
		default:
			return
		}
	}
}

// removeChoice records that a Dependency has one choice less.
func (a *attempt) removeChoice(c int32) {
	left := a.decrement(c)
	of := a.Constraints[c].Variable
	switch {
	case left == 0:
		a.forbid(of)
	case a.state[of] == due || a.state[of] == taken:
		a.implyLast(c)
	}
}
