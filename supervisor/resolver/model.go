package resolver

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/chandlery/chandlery/supervisor/resolver/constraint"
	"github.com/chandlery/chandlery/supervisor/resolver/sat"
)

const (
	// maxNodes is the maximum number of versions in the problem of one group of Subscriptions.
	maxNodes = 50_000
	// maxSteps is the maximum number of solver steps for a group: some seconds.
	maxSteps = 8_000
)

var errTooManyVersions = fmt.Errorf("more than %d versions would have to be considered; name channels and startingCSVs in the Subscriptions to narrow the choice", maxNodes)

// breadth is how many of the alternatives a model includes.
type breadth int

const (
	// narrow includes only the best alternative of each choice. If all of these are possible, no solution is better.
	// This holds for most problems.
	narrow breadth = iota
	// sample includes the first few alternatives, for explanations. If there is no solution with all of them, there
	// is none with a few.
	sample
	// wide includes all of them.
	wide
)

// alternatives returns the number of alternatives of each choice in a model.
func (b breadth) alternatives() int {
	const few = 20
	switch b {
	case narrow:
		return 1
	case sample:
		return few
	default:
		return math.MaxInt
	}
}

// model is the problem of a group of Subscriptions in terms of the solver.
type model struct {
	*resolution

	breadth   breadth
	allowance *sat.Allowance
	group     []*request
	problem   sat.Problem
	// reasons hold the meaning of each constraint of the problem.
	reasons  []reason
	requests map[*request]sat.ID
	nodes    map[node]sat.ID
	// order holds the nodes by their IDs. Variables that are not nodes are missing.
	order map[sat.ID]node
	// queue holds the nodes whose constraints have not been added yet.
	queue []node
	// choices are the constraints that are completed once all nodes are known.
	choices []choice
	// competing are requests of other groups that affect this problem.
	competing []*request
}

// choice is a dependency with all its alternatives, known or not.
type choice struct {
	of     sat.ID
	nodes  []node
	parts  []sat.ID
	reason reason
	// equal is true if none of the nodes is preferred.
	equal bool
	// certain is the number of nodes that are preferred to anything in catalogs that are still being read.
	certain int
}

// newModel returns the model of a group.
func (r *resolution) newModel(ctx context.Context, group []*request, b breadth, allowance *sat.Allowance) (*model, error) {
	m := r.blank(b, allowance)
	m.group = group
	for _, req := range group {
		id := m.variable()
		m.requests[req] = id
		m.add(sat.Constraint{Kind: sat.Mandatory, Variable: id}, reason{kind: subscribed, request: req})
		m.choose(choice{of: id, nodes: req.alternatives(), reason: reason{kind: requested, request: req}})
	}
	if err := m.close(ctx); err != nil {
		return nil, err
	}
	return m, nil
}

// blank returns an empty model.
func (r *resolution) blank(b breadth, allowance *sat.Allowance) *model {
	return &model{
		resolution: r, breadth: b, allowance: allowance,
		requests: map[*request]sat.ID{}, nodes: map[node]sat.ID{}, order: map[sat.ID]node{},
	}
}

// close adds all consequences of the nodes in a model.
func (m *model) close(ctx context.Context) error {
	for len(m.queue) > 0 {
		n := m.queue[0]
		m.queue = m.queue[1:]
		m.describe(n)
		if len(m.nodes) > maxNodes {
			return errTooManyVersions
		}
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("resolving the Subscriptions of namespace %s: %w", m.Namespace, err)
		}
	}
	m.hold()
	m.exclude()
	m.complete()
	return nil
}

func (m *model) variable() sat.ID {
	m.problem.Variables++
	return sat.ID(m.problem.Variables - 1)
}

func (m *model) add(c sat.Constraint, why reason) {
	m.problem.Constraints = append(m.problem.Constraints, c)
	m.reasons = append(m.reasons, why)
}

// consider adds a node to the problem.
func (m *model) consider(n node) sat.ID {
	if id, known := m.nodes[n]; known {
		return id
	}
	id := m.variable()
	m.nodes[n], m.order[id] = id, n
	m.queue = append(m.queue, n)
	return id
}

// choose adds a choice, and its alternatives up to the breadth of the model.
func (m *model) choose(c choice) {
	for _, n := range c.nodes[:min(len(c.nodes), m.breadth.alternatives())] {
		m.consider(n)
	}
	m.choices = append(m.choices, c)
}

// describe adds the constraints of a node.
func (m *model) describe(n node) {
	if n.operator != nil {
		m.addPresent(n)
		return
	}
	for _, present := range m.operators.conflicting(n) {
		m.consider(present)
		m.addCompeting(present.operator)
	}
	id := m.nodes[n]
	switch b := n.entry.Bundle; {
	case b.Err != nil:
		m.add(sat.Constraint{Kind: sat.Prohibited, Variable: id}, reason{kind: unreadable, node: n})
		return
	case b.Subject.Deprecated:
		m.add(sat.Constraint{Kind: sat.Prohibited, Variable: id}, reason{kind: deprecated, node: n})
		return
	}
	for i := range n.entry.Bundle.Requires {
		c := &n.entry.Bundle.Requires[i]
		m.require(id, n.catalog, c, reason{kind: requires, node: n, constraint: c})
	}
}

// require adds a dependency: an operator that meets the constraint, or several that do so together.
func (m *model) require(of sat.ID, catalog CatalogKey, c *constraint.Constraint, why reason) {
	if m.evaluator.met(c, why.node.subject()) {
		return
	}
	found := m.providers.find(catalog, c)
	next := choice{of: of, nodes: found.nodes, reason: why, certain: found.certain}
	if parts := m.evaluator.split(c); len(parts) > 0 && (m.breadth != narrow || len(found.nodes) == 0) {
		together := m.variable()
		for i := range parts {
			m.require(together, catalog, &parts[i], reason{kind: requires, node: why.node, constraint: &parts[i]})
		}
		next.parts = append(next.parts, together)
	}
	m.choose(next)
}

// addPresent adds a present operator. It remains, unless a Subscription of the group may replace it.
func (m *model) addPresent(n node) {
	if req := m.owner[n.operator]; req != nil && slices.Contains(m.group, req) {
		return
	}
	m.add(sat.Constraint{Kind: sat.Mandatory, Variable: m.nodes[n]}, reason{kind: present, node: n})
}

// addCompeting records that another group may replace an operator that blocks a version here.
func (m *model) addCompeting(o *Operator) {
	req := m.owner[o]
	if req != nil && len(req.entries) > 0 && !slices.Contains(m.group, req) && !slices.Contains(m.competing, req) {
		m.competing = append(m.competing, req)
	}
}

// known returns all nodes in the order in which they were added.
func (m *model) known() []node {
	nodes := make([]node, 0, len(m.order))
	for id := range sat.ID(m.problem.Variables) {
		if n, ok := m.order[id]; ok {
			nodes = append(nodes, n)
		}
	}
	return nodes
}

// complete turns the choices into constraints, after all alternatives in the problem are known.
func (m *model) complete() {
	for _, c := range m.choices {
		var others []sat.ID
		for _, n := range c.nodes {
			if id, known := m.nodes[n]; known {
				others = append(others, id)
			}
		}
		others = append(others, c.parts...)
		m.add(sat.Constraint{Kind: sat.Dependency, Variable: c.of, Others: others}, c.reason)
	}
}
