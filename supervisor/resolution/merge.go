package resolution

import (
	"slices"

	"github.com/chandlery/chandlery/bundles"
	"github.com/chandlery/chandlery/supervisor/resolution/constraint"
)

// related returns the groups of requests that are related from the beginning: those for the same package, and those
// for operators of which one depends on the other.
func (res *resolver) related() [][]*request {
	p := newPartition(res.requests)
	byPackage := map[string]*request{}
	for _, req := range res.requests {
		if other := byPackage[req.sub.Package]; other != nil {
			p.join(other, req)
		}
		byPackage[req.sub.Package] = req
		if len(req.entries) == 0 {
			continue
		}
		for _, d := range res.operators.dependents[req.installed] {
			if other := res.owner[d.of]; other != nil && len(other.entries) > 0 {
				p.join(req, other)
			}
		}
	}
	return p.groups()
}

// merger joins groups whose results conflict.
type merger struct {
	*partition

	operators *operators
	evaluator *evaluator
	results   []*groupResult
	// replaced holds the requests that replace operators.
	replaced map[*Operator]*request
}

// mergeConflicting merges groups whose results conflict. Either they have chosen different versions of a package or
// different providers of an API, or one has replaced a dependency of another. The result has fewer groups for
// each conflict.
func (res *resolver) mergeConflicting(groups [][]*request, results []*groupResult) [][]*request {
	m := &merger{partition: newPartition(res.requests), operators: res.operators, evaluator: res.evaluator, results: results, replaced: replaced(results)}
	for _, group := range groups {
		for _, req := range group[1:] {
			m.join(group[0], req)
		}
	}
	m.joinByChoices()
	m.joinByNewDependencies()
	m.joinByDependents()
	return m.groups()
}

// chosenNode is the choice for a package or an API, with a request of its group.
type chosenNode struct {
	node    node
	request *request
}

// joinByChoices joins groups with different choices for a package or an API, and groups that compete for an operator.
func (m *merger) joinByChoices() {
	packages := map[string]chosenNode{}
	apis := map[bundles.GVK]chosenNode{}
	for _, a := range m.results {
		leader := a.group[0]
		for _, req := range a.competing {
			m.join(leader, req)
		}
		for _, n := range a.taken {
			if n.operator != nil {
				continue
			}
			joinByChoice(m, packages, n.pkg(), chosenNode{node: n, request: leader})
			for _, gvk := range n.subject().GVKs {
				joinByChoice(m, apis, gvk, chosenNode{node: n, request: leader})
			}
		}
	}
}

// joinByChoice joins two groups with different choices.
func joinByChoice[K comparable](m *merger, known map[K]chosenNode, key K, next chosenNode) {
	if other, ok := known[key]; ok && other.node != next.node {
		m.join(other.request, next.request)
		return
	}
	known[key] = next
}

// joinByNewDependencies joins groups if one replaces an operator on which the other's choice depends.
func (m *merger) joinByNewDependencies() {
	for _, a := range m.results {
		for _, n := range a.taken {
			if n.operator != nil {
				continue
			}
			for i := range n.entry.Bundle.Requires {
				m.joinByNewDependency(a, &n.entry.Bundle.Requires[i])
			}
		}
	}
}

// joinByNewDependency joins a group with those that replace an operator which meets its dependency, or a part of it.
func (m *merger) joinByNewDependency(a *groupResult, c *constraint.Constraint) {
	if m.metWithin(a, c) {
		return
	}
	m.joinReplacing(a.group[0], c)
	parts := m.evaluator.split(c)
	for i := range parts {
		m.joinByNewDependency(a, &parts[i])
	}
}

// joinByDependents joins groups that together replace all providers of an operator's dependency.
func (m *merger) joinByDependents() {
	remaining := m.remaining()
	for i := range m.operators.all {
		o := &m.operators.all[i]
		if m.replaced[o] == nil {
			continue
		}
		for _, d := range m.operators.dependents[o] {
			met := func(n node) bool { return d.constraint.MetBy(n.subject()) }
			if m.replaced[d.of] == nil && !slices.ContainsFunc(remaining, met) {
				m.joinReplacing(m.replaced[o], d.constraint)
			}
		}
	}
}

// joinReplacing joins all groups that replace an operator which meets a constraint with the group of the
// constraint.
func (m *merger) joinReplacing(leader *request, c *constraint.Constraint) {
	for i := range m.operators.all {
		if o := &m.operators.all[i]; m.replaced[o] != nil && c.MetBy(&o.Subject) {
			m.join(leader, m.replaced[o])
		}
	}
}

// metWithin reports whether a group alone meets a dependency: by a version that it installs, or by a present
// operator that remains.
func (m *merger) metWithin(a *groupResult, c *constraint.Constraint) bool {
	return slices.ContainsFunc(a.taken, func(n node) bool {
		return (n.operator == nil || m.replaced[n.operator] == nil) && c.MetBy(n.subject())
	})
}

// remaining returns the nodes that exist after all results.
func (m *merger) remaining() []node {
	nodes := entriesTaken(m.results)
	for i := range m.operators.all {
		if o := &m.operators.all[i]; m.replaced[o] == nil {
			nodes = append(nodes, node{operator: o})
		}
	}
	return nodes
}

// entriesTaken returns all versions that are to be installed.
func entriesTaken(results []*groupResult) []node {
	var entries []node
	for _, a := range results {
		for _, n := range a.taken {
			if n.operator == nil {
				entries = append(entries, n)
			}
		}
	}
	return entries
}

// replaced returns the request that replaces each replaced operator.
func replaced(results []*groupResult) map[*Operator]*request {
	replaced := map[*Operator]*request{}
	for _, a := range results {
		for _, req := range a.group {
			if req.installed != nil && a.failed[req] == nil && req.chosen(a.taken) != nil {
				replaced[req.installed] = req
			}
		}
	}
	return replaced
}

// partition is a partition of requests whose parts can be joined.
type partition struct {
	requests []*request
	parent   map[*request]*request
	// place holds the original order of the requests.
	place map[*request]int
}

func newPartition(requests []*request) *partition {
	p := &partition{requests: requests, parent: map[*request]*request{}, place: map[*request]int{}}
	for i, req := range requests {
		p.parent[req], p.place[req] = req, i
	}
	return p
}

func (p *partition) find(req *request) *request {
	for p.parent[req] != req {
		p.parent[req] = p.parent[p.parent[req]]
		req = p.parent[req]
	}
	return req
}

// join joins the parts of two requests; the one that comes first leads.
func (p *partition) join(a, b *request) {
	a, b = p.find(a), p.find(b)
	if p.place[a] > p.place[b] {
		a, b = b, a
	}
	p.parent[b] = a
}

// groups returns the parts in the order of their leaders, each in its order.
func (p *partition) groups() [][]*request {
	members := map[*request][]*request{}
	var leaders []*request
	for _, req := range p.requests {
		leader := p.find(req)
		if members[leader] == nil {
			leaders = append(leaders, leader)
		}
		members[leader] = append(members[leader], req)
	}
	groups := make([][]*request, len(leaders))
	for i, leader := range leaders {
		groups[i] = members[leader]
	}
	return groups
}
