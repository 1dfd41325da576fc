package resolver

import (
	"slices"

	"github.com/chandlery/chandlery/bundles"
	"github.com/chandlery/chandlery/supervisor/resolver/constraint"
)

// meetings joins groups whose answers conflict. Either they have chosen different versions of a package or
// different providers of an API, or one has replaced a dependency of another. The result has fewer groups for
// each conflict.
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

// claim is the choice for a package or an API, with its group.
type claim struct {
	node node
	wish *wish
}

// meet joins two groups with different choices.
func meet[K comparable](u *union, claims map[K]*claim, key K, n node, lead *wish) {
	if other := claims[key]; other != nil && other.node != n {
		u.join(other.wish, lead)
		return
	}
	claims[key] = &claim{node: n, wish: lead}
}

// broken joins groups if one replaces an operator on which the other's choice depends. It also joins groups
// that together replace all providers of an operator's dependency.
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

// joinReplacing joins all groups that replace an operator which meets a constraint with the group of the
// constraint.
func (r *resolution) joinReplacing(u *union, lead *wish, c *constraint.Constraint, replaced map[*Operator]*wish) {
	for i := range r.Operators {
		if o := &r.Operators[i]; replaced[o] != nil && c.MetBy(&o.Subject) {
			u.join(lead, replaced[o])
		}
	}
}

// metWithin reports whether a group alone meets a dependency: by a version that it installs, or by a present
// operator that remains.
func (r *resolution) metWithin(a *answer, replaced map[*Operator]*wish, c *constraint.Constraint) bool {
	return slices.ContainsFunc(a.taken, func(n node) bool {
		return (n.operator == nil || replaced[n.operator] == nil) && c.MetBy(n.subject())
	})
}

// end returns the nodes that exist after all answers, and the request that replaces each replaced operator.
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

// carry preserves the answers of the unchanged groups.
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

// union is a partition of requests whose parts can be joined.
type union struct {
	wishes []*wish
	parent map[*wish]*wish
	// place holds the original order of the requests.
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

// join joins the parts of two requests; the one that comes first leads.
func (u *union) join(a, b *wish) {
	a, b = u.find(a), u.find(b)
	if u.place[a] > u.place[b] {
		a, b = b, a
	}
	u.parent[b] = a
}

// groups returns the parts in the order of their leaders, each in its order.
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
