package resolver

import (
	"slices"

	"github.com/chandlery/chandlery/bundles"
	"github.com/chandlery/chandlery/supervisor/resolver/constraint"
)

// meetings puts together the groups whose answers do not go together: they have
// chosen different versions of a package, or different providers of an API, or
// one has replaced what another one relies on. The result has a group less for
// each meeting.
func (r *resolution) meetings(groups [][]*wish, answers []*answer) [][]*wish {
	u := newUnion(r.wishes)
	for _, group := range groups {
		for _, w := range group[1:] {
			u.join(group[0], w)
		}
	}
	packages := map[string]*claim{}
	apis := map[bundles.GVK]*claim{}
	for _, a := range answers {
		lead := a.group[0]
		for _, w := range a.drawn {
			u.join(lead, w)
		}
		for _, n := range a.taken {
			if n.operator != nil {
				continue
			}
			meet(u, packages, n.pkg(), n, lead)
			for _, gvk := range n.subject().GVKs {
				meet(u, apis, gvk, n, lead)
			}
		}
	}
	r.broken(u, answers)
	return u.groups()
}

// claim is what has been chosen for a package or an API, and by whose group.
type claim struct {
	node node
	wish *wish
}

// meet joins two groups that have chosen differently.
func meet[K comparable](u *union, claims map[K]*claim, key K, n node, lead *wish) {
	if other := claims[key]; other != nil && other.node != n {
		u.join(other.wish, lead)
		return
	}
	claims[key] = &claim{node: n, wish: lead}
}

// broken joins groups one of which replaces an operator that the other's choice
// relies on, and groups that together replace all that an operator relies on.
func (r *resolution) broken(u *union, answers []*answer) {
	end, replaced := r.end(answers)
	for _, a := range answers {
		for _, n := range a.taken {
			if n.operator != nil {
				continue
			}
			for i := range n.entry.Bundle.Requires {
				if c := &n.entry.Bundle.Requires[i]; !r.metWithin(a, replaced, c) {
					r.joinReplacing(u, a.group[0], c, replaced)
				}
			}
		}
	}
	for i := range r.Operators {
		o := &r.Operators[i]
		for _, n := range r.needs[o] {
			met := slices.ContainsFunc(end, func(there node) bool { return n.constraint.MetBy(there.subject()) })
			if replaced[o] != nil && replaced[n.of] == nil && !met {
				r.joinReplacing(u, replaced[o], n.constraint, replaced)
			}
		}
	}
}

// joinReplacing joins all groups that replace an operator which meets a constraint
// to the one that minds.
func (r *resolution) joinReplacing(u *union, lead *wish, c *constraint.Constraint, replaced map[*Operator]*wish) {
	for i := range r.Operators {
		if o := &r.Operators[i]; replaced[o] != nil && c.MetBy(&o.Subject) {
			u.join(lead, replaced[o])
		}
	}
}

// metWithin says whether what a group relies on is there without the others: it
// brings it itself, or it is present and stays.
func (r *resolution) metWithin(a *answer, replaced map[*Operator]*wish, c *constraint.Constraint) bool {
	return slices.ContainsFunc(a.taken, func(n node) bool {
		return (n.operator == nil || replaced[n.operator] == nil) && c.MetBy(n.subject())
	})
}

// end gives what is there when all answers have been carried out, and by whose
// wish operators present are replaced.
func (r *resolution) end(answers []*answer) (end []node, replaced map[*Operator]*wish) {
	replaced = map[*Operator]*wish{}
	end = entriesTaken(answers)
	for _, a := range answers {
		for _, w := range a.group {
			if w.installed != nil && a.failed[w] == nil && w.newest(a.taken) != nil {
				replaced[w.installed] = w
			}
		}
	}
	for i := range r.Operators {
		if o := &r.Operators[i]; replaced[o] == nil {
			end = append(end, node{operator: o})
		}
	}
	return end, replaced
}

// carry keeps the answers of the groups that are as they were.
func carry(groups [][]*wish, answers []*answer, joined [][]*wish) ([][]*wish, []*answer) {
	kept := make([]*answer, len(joined))
	for i, group := range joined {
		for j, old := range groups {
			if slices.Equal(group, old) {
				kept[i] = answers[j]
			}
		}
	}
	return joined, kept
}

// union is a partition of wishes that grows coarser.
type union struct {
	wishes []*wish
	parent map[*wish]*wish
	// place keeps the order in which the wishes were given.
	place map[*wish]int
}

func newUnion(wishes []*wish) *union {
	u := &union{wishes: wishes, parent: map[*wish]*wish{}, place: map[*wish]int{}}
	for i, w := range wishes {
		u.parent[w], u.place[w] = w, i
	}
	return u
}

func (u *union) find(w *wish) *wish {
	for u.parent[w] != w {
		u.parent[w] = u.parent[u.parent[w]]
		w = u.parent[w]
	}
	return w
}

// join puts the parts of two wishes together; the one that comes first leads.
func (u *union) join(a, b *wish) {
	a, b = u.find(a), u.find(b)
	if u.place[a] > u.place[b] {
		a, b = b, a
	}
	u.parent[b] = a
}

// groups gives the parts in the order of their leaders, each in its order.
func (u *union) groups() [][]*wish {
	members := map[*wish][]*wish{}
	var leaders []*wish
	for _, w := range u.wishes {
		lead := u.find(w)
		if members[lead] == nil {
			leaders = append(leaders, lead)
		}
		members[lead] = append(members[lead], w)
	}
	groups := make([][]*wish, len(leaders))
	for i, lead := range leaders {
		groups[i] = members[lead]
	}
	return groups
}
