package resolver

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/chandlery/chandlery/supervisor/catalogs/content"
	"github.com/chandlery/chandlery/supervisor/resolver/constraint"
	"github.com/chandlery/chandlery/supervisor/resolver/sat"
)

const (
	// maxNodes bounds the versions that are considered for one group of
	// Subscriptions.
	maxNodes = 50_000
	// maxSteps is what the solver may take for a group: some seconds.
	maxSteps = 8_000
)

var errTooManyVersions = fmt.Errorf("more than %d versions would have to be considered; name channels and startingCSVs in the Subscriptions to narrow the choice", maxNodes)

// breadth says how many of the alternatives a model has.
type breadth int

const (
	// narrow has the best alternative of each choice only. Where that can be had
	// everywhere, nothing can be better, and most problems are like that.
	narrow breadth = iota
	// sample has the first few of them. It serves explanations: where there is no
	// solution with all of them, there is none with a few.
	sample
	// wide has all of them.
	wide
)

// alternatives is how many of each choice a model has.
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

// model is the problem of a group of Subscriptions in the solver's terms.
type model struct {
	*resolution

	breadth   breadth
	allowance *sat.Allowance
	group     []*wish
	problem   sat.Problem
	// reasons tell of each constraint of the problem what it says, and of whom.
	reasons []reason
	wishes  map[*wish]sat.ID
	nodes   map[node]sat.ID
	// order has the nodes by their IDs; what is no node has none.
	order map[sat.ID]node
	// queue are the nodes whose own constraints have not been added yet.
	queue []node
	// choices are the constraints that have to be completed once all nodes are
	// known.
	choices []choice
	// drawn are wishes of other groups that have a say in what is considered here.
	drawn []*wish
}

// choice is a dependency with all its alternatives, known or not.
type choice struct {
	of     sat.ID
	nodes  []node
	parts  []sat.ID
	reason reason
	// equal says that none of the nodes is better than the others.
	equal bool
	// sure is how many of the nodes come before what catalogs may have that are
	// being read.
	sure int
}

// newModel puts a group into the solver's terms.
func (r *resolution) newModel(ctx context.Context, group []*wish, b breadth, allowance *sat.Allowance) (*model, error) {
	m := r.blank(b, allowance)
	m.group = group
	for _, w := range group {
		id := m.variable()
		m.wishes[w] = id
		m.add(sat.Constraint{Kind: sat.Mandatory, Variable: id}, reason{kind: wished, wish: w})
		m.choose(choice{of: id, nodes: w.alternatives(), reason: reason{kind: asks, wish: w}})
	}
	if err := m.close(ctx); err != nil {
		return nil, err
	}
	return m, nil
}

// blank is a model without anything in it.
func (r *resolution) blank(b breadth, allowance *sat.Allowance) *model {
	return &model{
		resolution: r, breadth: b, allowance: allowance,
		wishes: map[*wish]sat.ID{}, nodes: map[node]sat.ID{}, order: map[sat.ID]node{},
	}
}

// close adds all that follows from what has been put into a model.
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

// consider makes a node part of the problem.
func (m *model) consider(n node) sat.ID {
	if id, known := m.nodes[n]; known {
		return id
	}
	id := m.variable()
	m.nodes[n], m.order[id] = id, n
	m.queue = append(m.queue, n)
	return id
}

// choose adds a choice, whose alternatives become part of the problem, as many as
// the model is broad.
func (m *model) choose(c choice) {
	for _, n := range c.nodes[:min(len(c.nodes), m.breadth.alternatives())] {
		m.consider(n)
	}
	m.choices = append(m.choices, c)
}

// describe adds what a node demands by itself.
func (m *model) describe(n node) {
	if n.operator != nil {
		m.fact(n)
		return
	}
	for _, present := range m.rivalsOf(n) {
		m.consider(present)
		m.draw(present.operator)
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

// require adds what a bundle needs: an operator that meets the constraint, or
// several that do so together.
func (m *model) require(of sat.ID, catalog CatalogKey, c *constraint.Constraint, why reason) {
	if m.met(c, why.node.subject()) {
		return
	}
	found := m.providers(catalog, c)
	next := choice{of: of, nodes: found.nodes, reason: why, sure: found.sure}
	if parts := m.split(c); len(parts) > 0 && (m.breadth != narrow || len(found.nodes) == 0) {
		together := m.variable()
		for i := range parts {
			m.require(together, catalog, &parts[i], reason{kind: requires, node: why.node, constraint: &parts[i]})
		}
		next.parts = append(next.parts, together)
	}
	m.choose(next)
}

// fact adds an operator that is present. It stays, unless a Subscription of the
// group may replace it.
func (m *model) fact(n node) {
	if w := m.holder[n.operator]; w != nil && slices.Contains(m.group, w) {
		return
	}
	m.add(sat.Constraint{Kind: sat.Mandatory, Variable: m.nodes[n]}, reason{kind: present, node: n})
}

// draw notes that another group may replace an operator that stands in the way
// here.
func (m *model) draw(o *Operator) {
	w := m.holder[o]
	if w != nil && len(w.entries) > 0 && !slices.Contains(m.group, w) && !slices.Contains(m.drawn, w) {
		m.drawn = append(m.drawn, w)
	}
}

// known gives all nodes in the order in which they became part of the problem.
func (m *model) known() []node {
	nodes := make([]node, 0, len(m.order))
	for id := range sat.ID(m.problem.Variables) {
		if n, ok := m.order[id]; ok {
			nodes = append(nodes, n)
		}
	}
	return nodes
}

// complete turns the choices into constraints, now that it is known which of
// their alternatives are part of the problem.
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

// split takes a constraint apart that several operators may meet together, always
// into the same parts.
func (r *resolution) split(c *constraint.Constraint) []constraint.Constraint {
	if known, ok := r.parts[c]; ok {
		return known
	}
	parts := c.Split()
	r.parts[c] = parts
	return parts
}

// newest gives the entry of a wish among nodes that were taken; nil when what is
// installed stays.
func (w *wish) newest(taken []node) *content.Entry {
	for _, e := range w.entries {
		if slices.Contains(taken, node{catalog: w.sub.Catalog, entry: e}) {
			return e
		}
	}
	return nil
}
