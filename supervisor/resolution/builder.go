package resolution

import (
	"context"
	"fmt"
	"slices"

	"github.com/chandlery/chandlery/supervisor/resolution/constraint"
	"github.com/chandlery/chandlery/supervisor/resolution/sat"
)

// maxNodes is the maximum number of versions in the problem of one group of Subscriptions.
const maxNodes = 50_000

// builder builds a groupProblem: it adds versions with their dependencies, recursively.
type builder struct {
	*resolver
	*groupProblem

	// queue holds the nodes whose constraints have not been added yet.
	queue []node
}

func (res *resolver) newBuilder(group []*request, b breadth, allowance *sat.Allowance) *builder {
	return &builder{resolver: res, groupProblem: &groupProblem{
		satProblem: newSATProblem(), namespace: res.Namespace, group: group, breadth: b, allowance: allowance,
	}}
}

// newGroupProblem returns the problem of a group.
func (res *resolver) newGroupProblem(ctx context.Context, group []*request, b breadth, allowance *sat.Allowance) (*groupProblem, error) {
	p := res.newBuilder(group, b, allowance)
	for _, req := range group {
		id := p.variable()
		p.roots = append(p.roots, id)
		p.add(sat.Constraint{Kind: sat.Mandatory, Variable: id}, reason{kind: subscribed, request: req})
		p.choose(choice{of: id, nodes: req.alternatives(), reason: reason{kind: requested, request: req}})
	}
	return p.build(ctx)
}

// build adds all consequences of the nodes, and returns the problem.
func (b *builder) build(ctx context.Context) (*groupProblem, error) {
	for len(b.queue) > 0 {
		n := b.queue[0]
		b.queue = b.queue[1:]
		b.addNode(n)
		if len(b.ids) > maxNodes {
			return nil, errTooManyVersions
		}
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("resolving the Subscriptions of namespace %s: %w", b.namespace, err)
		}
	}
	b.protectDependents()
	b.exclude(b.operators)
	b.addChoices()
	return b.groupProblem, nil
}

// consider adds a node to the problem.
func (b *builder) consider(n node) sat.ID {
	id, added := b.node(n)
	if added {
		b.queue = append(b.queue, n)
	}
	return id
}

// choose adds a choice, and its alternatives up to the breadth of the problem.
func (b *builder) choose(c choice) {
	for _, n := range c.nodes[:min(len(c.nodes), b.breadth.alternatives())] {
		b.consider(n)
	}
	b.choices = append(b.choices, c)
}

// addNode adds the constraints of a node.
func (b *builder) addNode(n node) {
	if n.operator != nil {
		b.addPresent(n)
		return
	}
	for _, present := range b.operators.conflicting(n) {
		b.consider(present)
		b.addCompeting(present.operator)
	}
	id := b.ids[n]
	switch bundle := n.entry.Bundle; {
	case bundle.Err != nil:
		b.add(sat.Constraint{Kind: sat.Prohibited, Variable: id}, reason{kind: unreadable, node: n})
		return
	case bundle.Subject.Deprecated:
		b.add(sat.Constraint{Kind: sat.Prohibited, Variable: id}, reason{kind: deprecated, node: n})
		return
	}
	for i := range n.entry.Bundle.Requires {
		c := &n.entry.Bundle.Requires[i]
		b.require(id, n.catalog, c, reason{kind: requires, node: n, constraint: c})
	}
}

// require adds a dependency: an operator that meets the constraint, or several that do so together.
func (b *builder) require(of sat.ID, catalog CatalogKey, c *constraint.Constraint, why reason) {
	if b.evaluator.met(c, why.node.subject()) {
		return
	}
	found := b.providers.find(catalog, c)
	next := choice{of: of, nodes: found.nodes, reason: why, certain: found.certain}
	if parts := b.evaluator.split(c); len(parts) > 0 && (b.breadth != narrow || len(found.nodes) == 0) {
		together := b.variable()
		for i := range parts {
			b.require(together, catalog, &parts[i], reason{kind: requires, node: why.node, constraint: &parts[i]})
		}
		next.parts = append(next.parts, together)
	}
	b.choose(next)
}

// addPresent adds a present operator. It remains, unless a Subscription of the group may replace it.
func (b *builder) addPresent(n node) {
	if req := b.owner[n.operator]; req != nil && slices.Contains(b.group, req) {
		return
	}
	b.add(sat.Constraint{Kind: sat.Mandatory, Variable: b.ids[n]}, reason{kind: present, node: n})
}

// addCompeting records that another group may replace an operator that blocks a version here.
func (b *builder) addCompeting(o *Operator) {
	req := b.owner[o]
	if req != nil && len(req.entries) > 0 && !slices.Contains(b.group, req) && !slices.Contains(b.competing, req) {
		b.competing = append(b.competing, req)
	}
}

// addChoices turns the choices into constraints, after all alternatives in the problem are known.
func (b *builder) addChoices() {
	for _, c := range b.choices {
		var others []sat.ID
		for _, n := range c.nodes {
			if id, known := b.ids[n]; known {
				others = append(others, id)
			}
		}
		others = append(others, c.parts...)
		b.add(sat.Constraint{Kind: sat.Dependency, Variable: c.of, Others: others}, c.reason)
	}
}
