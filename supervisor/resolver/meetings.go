package resolver

import (
	"slices"

	"github.com/chandlery/chandlery/bundles"
	"github.com/chandlery/chandlery/supervisor/resolver/constraint"
)

// meetings joins groups whose answers conflict. Either they have chosen different versions of a package or
// different providers of an API, or one has replaced a dependency of another. The result has fewer groups for
// each conflict.
func (r *resolution) meetings(groups [][]*request, answers []*answer) [][]*request {
	u := newUnion(r.requests)
	for _, group := range groups {
		for _, req := range group[1:] {
			u.join(group[0], req)
		}
	}
	packages := map[string]*claim{}
	apis := map[bundles.GVK]*claim{}
	for _, a := range answers {
		lead := a.group[0]
		for _, req := range a.competing {
			u.join(lead, req)
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
	node    node
	request *request
}

// meet joins two groups with different choices.
func meet[K comparable](u *union, claims map[K]*claim, key K, n node, lead *request) {
	if other := claims[key]; other != nil && other.node != n {
		u.join(other.request, lead)
		return
	}
	claims[key] = &claim{node: n, request: lead}
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
		for _, n := range r.operators.dependents[o] {
			met := slices.ContainsFunc(end, func(there node) bool { return n.constraint.MetBy(there.subject()) })
			if replaced[o] != nil && replaced[n.of] == nil && !met {
				r.joinReplacing(u, replaced[o], n.constraint, replaced)
			}
		}
	}
}

// joinReplacing joins all groups that replace an operator which meets a constraint with the group of the
// constraint.
func (r *resolution) joinReplacing(u *union, lead *request, c *constraint.Constraint, replaced map[*Operator]*request) {
	for i := range r.Operators {
		if o := &r.Operators[i]; replaced[o] != nil && c.MetBy(&o.Subject) {
			u.join(lead, replaced[o])
		}
	}
}

// metWithin reports whether a group alone meets a dependency: by a version that it installs, or by a present
// operator that remains.
func (r *resolution) metWithin(a *answer, replaced map[*Operator]*request, c *constraint.Constraint) bool {
	return slices.ContainsFunc(a.taken, func(n node) bool {
		return (n.operator == nil || replaced[n.operator] == nil) && c.MetBy(n.subject())
	})
}

// end returns the nodes that exist after all answers, and the request that replaces each replaced operator.
func (r *resolution) end(answers []*answer) (end []node, replaced map[*Operator]*request) {
	replaced = map[*Operator]*request{}
	end = entriesTaken(answers)
	for _, a := range answers {
		for _, req := range a.group {
			if req.installed != nil && a.failed[req] == nil && req.chosen(a.taken) != nil {
				replaced[req.installed] = req
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
func carry(groups [][]*request, answers []*answer, joined [][]*request) ([][]*request, []*answer) {
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
	requests []*request
	parent   map[*request]*request
	// place holds the original order of the requests.
	place map[*request]int
}

func newUnion(requests []*request) *union {
	u := &union{requests: requests, parent: map[*request]*request{}, place: map[*request]int{}}
	for i, req := range requests {
		u.parent[req], u.place[req] = req, i
	}
	return u
}

func (u *union) find(req *request) *request {
	for u.parent[req] != req {
		u.parent[req] = u.parent[u.parent[req]]
		req = u.parent[req]
	}
	return req
}

// join joins the parts of two requests; the one that comes first leads.
func (u *union) join(a, b *request) {
	a, b = u.find(a), u.find(b)
	if u.place[a] > u.place[b] {
		a, b = b, a
	}
	u.parent[b] = a
}

// groups returns the parts in the order of their leaders, each in its order.
func (u *union) groups() [][]*request {
	members := map[*request][]*request{}
	var leaders []*request
	for _, req := range u.requests {
		lead := u.find(req)
		if members[lead] == nil {
			leaders = append(leaders, lead)
		}
		members[lead] = append(members[lead], req)
	}
	groups := make([][]*request, len(leaders))
	for i, lead := range leaders {
		groups[i] = members[lead]
	}
	return groups
}
