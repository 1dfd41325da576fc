package resolver

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/chandlery/chandlery/bundles"
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

// rivalsOf gives the operators present that a version cannot be beside: another
// one of its package, and those that bring the same APIs.
func (m *model) rivalsOf(n node) []node {
	if len(m.Operators) == 0 {
		return nil
	}
	var found []node
	add := func(operators []*Operator) {
		for _, o := range operators {
			if rival := (node{operator: o}); !slices.Contains(found, rival) {
				found = append(found, rival)
			}
		}
	}
	add(m.byPackage[n.pkg()])
	for _, gvk := range n.subject().GVKs {
		add(m.byAPI[gvk])
	}
	return found
}

// hold keeps what operators that are present need: a dependency that is met now
// must not be broken by an update.
func (m *model) hold() {
	for _, w := range m.group {
		if w.installed == nil || len(w.entries) == 0 {
			continue
		}
		for _, need := range m.needs[w.installed] {
			if !m.safe(need) {
				m.keep(need)
			}
		}
	}
}

// safe says whether a need is met by an operator that stays whatever the group
// gets.
func (m *model) safe(n need) bool {
	return slices.ContainsFunc(m.meeting(n), func(o *Operator) bool {
		return m.holder[o] == nil || !slices.Contains(m.group, m.holder[o])
	})
}

// meeting gives the operators present that meet a need of another one.
func (r *resolution) meeting(n need) []*Operator {
	var found []*Operator
	for i := range r.Operators {
		if o := &r.Operators[i]; o != n.of && n.constraint.MetBy(&o.Subject) {
			found = append(found, o)
		}
	}
	return found
}

// keep demands that a need stays met.
func (m *model) keep(n need) {
	kept := choice{of: m.consider(node{operator: n.of}), equal: true, reason: reason{kind: requires, node: node{operator: n.of}, constraint: n.constraint}}
	for _, o := range m.meeting(n) {
		m.consider(node{operator: o})
	}
	m.drain()
	for _, there := range m.known() {
		if there.operator != n.of && n.constraint.MetBy(there.subject()) && m.lasting(there) {
			kept.nodes = append(kept.nodes, there)
		}
	}
	m.choices = append(m.choices, kept)
}

// lasting says whether a node, if it is taken, is surely there in the end: it is
// present, or a candidate. Others come only with what needs them.
func (m *model) lasting(n node) bool {
	return n.operator != nil || slices.ContainsFunc(m.group, func(w *wish) bool {
		return w.sub.Catalog == n.catalog && slices.Contains(w.entries, n.entry)
	})
}

// drain describes the operators that were added late; they bring nothing else
// with them.
func (m *model) drain() {
	for _, n := range m.queue {
		m.describe(n)
	}
	m.queue = nil
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

// exclude adds what cannot be beside each other: two versions of a package, two
// providers of an API. Operators that are present are facts, so that there is
// nothing to demand among themselves.
func (m *model) exclude() {
	var entries []node
	packages := map[string][]node{}
	var order []string
	for _, n := range m.known() {
		if n.operator != nil {
			continue
		}
		entries = append(entries, n)
		if packages[n.pkg()] == nil {
			order = append(order, n.pkg())
		}
		packages[n.pkg()] = append(packages[n.pkg()], n)
		for _, present := range m.rivalsOf(n) {
			m.add(sat.Constraint{Kind: sat.Conflict, Variable: m.nodes[present], Others: []sat.ID{m.nodes[n]}},
				reason{kind: beside, node: present, other: n})
		}
	}
	for _, pkg := range order {
		m.atMostOne(packages[pkg], reason{kind: onePackage, pkg: pkg})
	}
	m.excludeProviders(entries)
}

// excludeProviders lets an API be provided once. Only those that several packages
// provide matter. Versions of a package mostly share the list of what they
// provide, which is looked at once then.
func (m *model) excludeProviders(entries []node) {
	shared := sharedAPIs(entries)
	if len(shared) == 0 {
		return
	}
	providers := map[bundles.GVK][]node{}
	var order []bundles.GVK
	of := map[apis][]bundles.GVK{}
	for _, n := range entries {
		list := n.subject().GVKs
		if len(list) == 0 {
			continue
		}
		common, known := of[apisOf(list)]
		if !known {
			common = slices.DeleteFunc(slices.Clone(list), func(gvk bundles.GVK) bool { return !shared[gvk] })
			of[apisOf(list)] = common
		}
		for _, gvk := range common {
			if providers[gvk] == nil {
				order = append(order, gvk)
			}
			if same := providers[gvk]; len(same) == 0 || same[len(same)-1] != n {
				providers[gvk] = append(providers[gvk], n)
			}
		}
	}
	for _, gvk := range order {
		m.atMostOne(providers[gvk], reason{kind: oneAPI, gvk: gvk})
	}
}

// apis tells lists of APIs apart without a look at what is in them: equal lists are
// mostly one and the same.
type apis struct {
	first *bundles.GVK
	count int
}

func apisOf(list []bundles.GVK) apis { return apis{first: &list[0], count: len(list)} }

// sharedAPIs gives the APIs that entries of several packages provide.
func sharedAPIs(entries []node) map[bundles.GVK]bool {
	shared := map[bundles.GVK]bool{}
	owner := map[bundles.GVK]string{}
	type offer struct {
		pkg  string
		apis apis
	}
	seen := map[offer]bool{}
	for _, n := range entries {
		list := n.subject().GVKs
		if len(list) == 0 || seen[offer{n.pkg(), apisOf(list)}] {
			continue
		}
		seen[offer{n.pkg(), apisOf(list)}] = true
		for _, gvk := range list {
			if pkg, known := owner[gvk]; known && pkg != n.pkg() {
				shared[gvk] = true
			}
			owner[gvk] = n.pkg()
		}
	}
	return shared
}

func (m *model) atMostOne(nodes []node, why reason) {
	if len(nodes) < 2 {
		return
	}
	ids := make([]sat.ID, len(nodes))
	for i, n := range nodes {
		ids[i] = m.nodes[n]
	}
	m.add(sat.Constraint{Kind: sat.AtMost, Limit: 1, Others: ids}, why)
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

// solve gives the nodes that are there in the end, of those that the model knows;
// errConflict when there is no solution. Wishes that are left out need not be met.
func (m *model) solve(ctx context.Context, leftOut map[*wish]bool) ([]node, error) {
	problem, _ := m.without(leftOut)
	taken, err := m.allowance.Find(ctx, problem)
	if errors.Is(err, sat.ErrNone) {
		return nil, errConflict
	}
	if err != nil {
		return nil, m.failure(err)
	}
	var nodes []node
	for _, id := range taken {
		if n, ok := m.order[id]; ok {
			nodes = append(nodes, n)
		}
	}
	return nodes, nil
}

// contradiction gives constraints that leave no solution, of which none can be left
// out. The error says that they could not be found; errNoConflict, that there are
// none.
func (m *model) contradiction(ctx context.Context, leftOut map[*wish]bool) ([]reason, error) {
	problem, positions := m.without(leftOut)
	_, err := m.allowance.Solve(ctx, problem)
	contradiction, ok := errors.AsType[*sat.UnsatisfiableError](err)
	switch {
	case err == nil:
		return nil, errNoConflict
	case !ok:
		return nil, m.failure(err)
	}
	reasons := make([]reason, len(contradiction.Constraints))
	for i, at := range contradiction.Constraints {
		reasons[i] = m.reasons[positions[at]]
	}
	return reasons, nil
}

var (
	errConflict   = errors.New("not all of it can be had")
	errNoConflict = errors.New("all of it can be had")
)

// without is the problem without some wishes, and where its constraints are among
// those of the model.
func (m *model) without(leftOut map[*wish]bool) (sat.Problem, []int) {
	problem := sat.Problem{Variables: m.problem.Variables}
	var positions []int
	for i, c := range m.problem.Constraints {
		if why := m.reasons[i]; leftOut[why.wish] && why.kind == wished {
			continue
		}
		problem.Constraints = append(problem.Constraints, c)
		positions = append(positions, i)
	}
	return problem, positions
}

// failure says that the solver came to no end.
func (m *model) failure(err error) error {
	err = fmt.Errorf("resolving the Subscriptions of namespace %s: %w", m.Namespace, err)
	if _, limit := errors.AsType[*sat.LimitError](err); limit {
		return fmt.Errorf("%w; name channels and startingCSVs in the Subscriptions to narrow the choice", err)
	}
	return err
}

// unsure says whether a catalog that is being read may have something better than
// what was taken.
func (m *model) unsure(taken []node) bool {
	there := map[node]bool{}
	ids := map[sat.ID]bool{}
	for _, n := range taken {
		there[n], ids[m.nodes[n]] = true, true
	}
	return slices.ContainsFunc(m.choices, func(c choice) bool {
		if c.reason.kind != requires || c.equal || !ids[c.of] || c.sure > len(c.nodes) {
			return false
		}
		return !slices.ContainsFunc(c.nodes[:c.sure], func(n node) bool { return there[n] })
	})
}

// best says whether no model of more breadth can have a better solution: whatever
// was taken has the first alternative of each of its choices.
func (m *model) best(taken []node) bool {
	if m.breadth == wide {
		return true
	}
	there := map[node]bool{}
	ids := map[sat.ID]bool{}
	for _, n := range taken {
		there[n], ids[m.nodes[n]] = true, true
	}
	for _, id := range m.wishes {
		ids[id] = true
	}
	for _, c := range m.choices {
		if ids[c.of] && !c.equal && (len(c.nodes) == 0 || !there[c.nodes[0]]) {
			return false
		}
	}
	return true
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
