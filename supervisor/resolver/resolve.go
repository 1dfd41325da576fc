package resolver

import (
	"context"
	"errors"
	"slices"

	"github.com/chandlery/chandlery/bundles"
	"github.com/chandlery/chandlery/supervisor/catalogs/content"
	"github.com/chandlery/chandlery/supervisor/resolver/constraint"
	"github.com/chandlery/chandlery/supervisor/resolver/sat"
)

// Resolve returns an outcome for every Subscription of a problem. When ctx ends, those without an answer get
// its error.
func Resolve(ctx context.Context, p Problem) Solution {
	return newResolution(&p, maxSteps).resolve(ctx)
}

// resolution is the state of solving a problem, with its indexes.
type resolution struct {
	*Problem

	// steps bounds the work of the solver on a group, and again on its parts if the whole has no solution.
	steps    int
	solution Solution
	// requests are the Subscriptions that may get a version, in order of seniority.
	requests []*request
	// catalogs are in order of rank.
	catalogs  []CatalogKey
	byName    map[string]*Operator
	byPackage map[string][]*Operator
	byAPI     map[bundles.GVK][]*Operator
	// owner holds the request to which a present operator belongs; none if no Subscription claims it.
	owner map[*Operator]*request
	// dependents are the constraints of other operators that an operator meets.
	dependents map[*Operator][]dependency
	asked      map[offer][]*content.Entry
	// offChain are candidates that are not on the chain of their channel.
	offChain map[CatalogKey][]*content.Entry
	parts    map[*constraint.Constraint][]constraint.Constraint
	// budget bounds the evaluation of constraints.
	budget constraint.Budget
}

func (r *resolution) resolve(ctx context.Context) Solution {
	groups := r.groups()
	answers := make([]*answer, len(groups))
	for {
		for i, group := range groups {
			if answers[i] == nil {
				answers[i] = r.answer(ctx, group)
			}
		}
		joined := r.meetings(groups, answers)
		if len(joined) == len(groups) {
			break
		}
		groups, answers = carry(groups, answers, joined)
	}
	for _, a := range answers {
		r.tell(a)
	}
	r.along(answers)
	r.heal(ctx, answers)
	return r.solution
}

// dependency is a constraint of a present operator.
type dependency struct {
	of         *Operator
	constraint *constraint.Constraint
}

// request is a Subscription that may get a version.
type request struct {
	sub *Subscription
	// entries are the candidates, best first; none if there is no newer version or an operation is in progress.
	entries []*content.Entry
	// installed is the installed operator; nil for none.
	installed *Operator
}

// alternatives returns the versions that satisfy the request, best first.
func (req *request) alternatives() []node {
	nodes := make([]node, 0, len(req.entries)+1)
	for _, e := range req.entries {
		nodes = append(nodes, node{catalog: req.sub.Catalog, entry: e})
	}
	if req.installed != nil {
		nodes = append(nodes, node{operator: req.installed})
	}
	return nodes
}

func newResolution(p *Problem, steps int) *resolution {
	r := &resolution{
		Problem: p, steps: steps, solution: Solution{}, catalogs: p.rank(),
		byName: map[string]*Operator{}, byPackage: map[string][]*Operator{}, byAPI: map[bundles.GVK][]*Operator{},
		owner: map[*Operator]*request{}, dependents: map[*Operator][]dependency{},
		asked: map[offer][]*content.Entry{}, offChain: map[CatalogKey][]*content.Entry{}, parts: map[*constraint.Constraint][]constraint.Constraint{},
	}
	for i := range p.Operators {
		o := &p.Operators[i]
		r.byName[o.Name] = o
		if pkg := o.Subject.Package; pkg != "" {
			r.byPackage[pkg] = append(r.byPackage[pkg], o)
		}
		for _, gvk := range o.Subject.GVKs {
			r.byAPI[gvk] = append(r.byAPI[gvk], o)
		}
	}
	r.gatherDependencies()
	r.gatherRequests()
	return r
}

func (r *resolution) operator(name string) *Operator { return r.byName[name] }

// gatherDependencies determines which present operators depend on which others.
func (r *resolution) gatherDependencies() {
	for i := range r.Operators {
		dependent := &r.Operators[i]
		for j := range dependent.Requires {
			r.gatherDependency(dependent, &dependent.Requires[j])
		}
	}
}

// gatherDependency records the operators that meet a constraint of an operator, or its parts if several do so
// together. A constraint that the operator itself meets is not a dependency.
func (r *resolution) gatherDependency(of *Operator, c *constraint.Constraint) {
	if c.MetBy(&of.Subject) {
		return
	}
	alone := false
	for i := range r.Operators {
		if provider := &r.Operators[i]; r.met(c, &provider.Subject) {
			r.dependents[provider] = append(r.dependents[provider], dependency{of: of, constraint: c})
			alone = true
		}
	}
	if alone {
		return
	}
	parts := r.split(c)
	for i := range parts {
		r.gatherDependency(of, &parts[i])
	}
}

// gatherRequests finds the candidates of every Subscription. A Subscription without candidates, or in conflict
// with a senior one, is answered at once.
func (r *resolution) gatherRequests() {
	senior := map[string]*Subscription{}
	for _, sub := range bySeniority(r.Subscriptions) {
		keeper, taken := senior[sub.Package]
		if taken && r.settingsOf(keeper) != r.settingsOf(sub) {
			r.solution[sub.Name] = Outcome{Err: r.refusal(keeper, sub)}
			continue
		}
		if !taken && r.claims(sub) {
			senior[sub.Package] = sub
		}
		r.gatherRequest(sub)
	}
}

func (r *resolution) gatherRequest(sub *Subscription) {
	req := &request{sub: sub, installed: r.operator(sub.Installed)}
	entries, err := r.candidates(sub)
	if err != nil {
		r.solution[sub.Name] = Outcome{Err: err}
		return
	}
	req.entries = entries
	if sub.Frozen {
		req.entries = nil
		r.solution[sub.Name] = r.frozen(req, entries)
	}
	if len(req.alternatives()) == 0 {
		// The installed version is not among the operators of the namespace, and no newer one is available.
		r.solution[sub.Name] = Outcome{}
		return
	}
	r.requests = append(r.requests, req)
	for _, e := range req.entries {
		if e.Place < 0 && !slices.Contains(r.offChain[sub.Catalog], e) {
			r.offChain[sub.Catalog] = append(r.offChain[sub.Catalog], e)
		}
	}
	if req.installed != nil && r.owner[req.installed] == nil {
		r.owner[req.installed] = req
	}
}

// frozen returns the version that would be available if no operation were in progress.
func (r *resolution) frozen(req *request, entries []*content.Entry) Outcome {
	at := slices.IndexFunc(entries, func(e *content.Entry) bool { return e.Bundle.Err == nil })
	if at < 0 {
		return Outcome{Held: r.heldByPin(req.sub)}
	}
	return Outcome{Available: r.choice(req, entries[at])}
}

// groups joins the requests that are related from the beginning: those for the same package, and those for
// operators of which one depends on the other.
func (r *resolution) groups() [][]*request {
	u := newUnion(r.requests)
	byPackage := map[string]*request{}
	for _, req := range r.requests {
		if other := byPackage[req.sub.Package]; other != nil {
			u.join(other, req)
		}
		byPackage[req.sub.Package] = req
		if len(req.entries) == 0 {
			continue
		}
		for _, n := range r.dependents[req.installed] {
			if other := r.owner[n.of]; other != nil && len(other.entries) > 0 {
				u.join(req, other)
			}
		}
	}
	return u.groups()
}

// answer is the result for a group.
type answer struct {
	group []*request
	taken []node
	// failed holds an error for each request of the group that gets no version.
	failed map[*request]error
	// held holds the reason for each request that does not get its best candidate.
	held map[*request]error
	// competing are requests of other groups that affect the problem.
	competing []*request
	uncertain bool
}

// answer solves a group: with the best alternatives if possible, else with all alternatives. If that fails, it
// leaves out the requests that come last.
func (r *resolution) answer(ctx context.Context, group []*request) *answer {
	a := &answer{group: group, failed: map[*request]error{}, held: map[*request]error{}}
	allowance := sat.NewAllowance(r.steps)
	for _, b := range []breadth{narrow, wide} {
		m, err := r.newModel(ctx, group, b, allowance)
		if err != nil {
			return a.fail(err)
		}
		a.competing = m.competing
		if len(m.competing) > 0 {
			return a
		}
		a.taken, err = m.solve(ctx, nil)
		switch {
		case err != nil && !m.divisible(err):
			return a.fail(err)
		case err == nil && m.optimal(a.taken):
			a.uncertain = m.uncertain(a.taken)
			m.holdBack(ctx, a)
			return a
		case err != nil && b == wide:
			m.allowance = sat.NewAllowance(r.steps)
			m.accept(ctx, a)
			a.uncertain = r.pending() || m.uncertain(a.taken)
			m.holdBack(ctx, a)
		}
	}
	return a
}

// divisible reports whether a part of the group may have an answer although the whole has none.
func (m *model) divisible(err error) bool {
	_, limit := errors.AsType[*sat.LimitError](err)
	return errors.Is(err, errConflict) || (limit && len(m.group) > 1)
}

func (a *answer) fail(err error) *answer {
	a.failRest(err, 0)
	return a
}

// accept adds the requests of a group one by one, in order of seniority, as long as all of them can be met. The
// others fail with the constraints that they conflict with. Installed versions can always remain as they are.
func (m *model) accept(ctx context.Context, a *answer) {
	leftOut := map[*request]bool{}
	for _, req := range m.group {
		leftOut[req] = req.installed == nil
	}
	for i, req := range m.group {
		wasLeftOut := leftOut[req]
		leftOut[req] = false
		taken, err := m.solve(ctx, leftOut)
		if err == nil {
			a.taken = taken
			continue
		}
		if !errors.Is(err, errConflict) {
			// A problem that took too long once would do so again.
			a.failRest(err, i)
			return
		}
		a.failed[req] = m.whyNot(ctx, req, leftOut)
		leftOut[req] = wasLeftOut
	}
}

// whyNot returns why a request cannot be met together with those that are not left out.
func (m *model) whyNot(ctx context.Context, req *request, leftOut map[*request]bool) error {
	few, err := m.newModel(ctx, m.group, sample, m.allowance)
	if err != nil {
		return err
	}
	reasons, err := few.contradiction(ctx, leftOut)
	if err != nil {
		return err
	}
	return few.explain(req, reasons, false)
}

// failRest fails all requests of a group from an index on.
func (a *answer) failRest(err error, from int) {
	for _, req := range a.group[from:] {
		a.failed[req] = err
	}
}

// holdBack determines why requests do not get their best candidates.
func (m *model) holdBack(ctx context.Context, a *answer) {
	for _, req := range m.group {
		if a.failed[req] != nil || len(req.entries) == 0 || req.chosen(a.taken) == req.entries[0] {
			continue
		}
		reasons, err := m.against(ctx, a, req)
		if err == nil {
			a.held[req] = m.explain(req, reasons, true)
		}
	}
}

// against returns the constraints that conflict with the best candidate of a request, given the versions of the
// others.
func (m *model) against(ctx context.Context, a *answer, req *request) ([]reason, error) {
	few, err := m.newModel(ctx, m.group, sample, m.allowance)
	if err != nil {
		return nil, err
	}
	leftOut := map[*request]bool{}
	for _, other := range m.group {
		leftOut[other] = a.failed[other] != nil
		if e := other.chosen(a.taken); e != nil && other != req {
			few.fix(other, e, fixed)
		}
	}
	few.fix(req, req.entries[0], preferred)
	return few.contradiction(ctx, leftOut)
}

// fix requires that a request gets a certain entry.
func (m *model) fix(req *request, e *content.Entry, why kind) {
	n := node{catalog: req.sub.Catalog, entry: e}
	m.add(sat.Constraint{Kind: sat.Mandatory, Variable: m.consider(n)}, reason{kind: why, request: req, node: n})
}

// tell adds the answer for a group to the solution.
func (r *resolution) tell(a *answer) {
	for _, req := range a.group {
		if err := a.failed[req]; err != nil {
			r.solution[req.sub.Name] = Outcome{Err: r.orPending(a, err)}
			continue
		}
		if req.sub.Frozen {
			continue
		}
		outcome := r.heldBack(req, a)
		if e := req.chosen(a.taken); e != nil {
			outcome.Install = r.choice(req, e)
			if a.uncertain {
				outcome = Outcome{Err: ErrPending}
			}
		}
		r.solution[req.sub.Name] = outcome
	}
}

// heldBack returns the reason why a request does not get a newer version. If a version that is requested by
// name is not possible, it is an error and not only held back.
func (r *resolution) heldBack(req *request, a *answer) Outcome {
	switch {
	case req.sub.Pin != "" && len(req.entries) == 0:
		return Outcome{Held: r.heldByPin(req.sub)}
	case req.sub.Pin != "" && req.chosen(a.taken) == nil:
		return Outcome{Err: r.orPending(a, a.held[req])}
	case req.installed != nil && len(req.entries) == 0:
		return Outcome{Held: r.unreadableRange(req.sub)}
	default:
		return Outcome{Held: a.held[req]}
	}
}

// pending reports whether a catalog in scope is being read for the first time.
func (r *resolution) pending() bool {
	for _, c := range r.Catalogs {
		if c.Pending {
			return true
		}
	}
	return false
}

// orPending returns ErrPending if a catalog that is being read may have the missing version, and the error
// otherwise.
func (r *resolution) orPending(a *answer, err error) error {
	if a.uncertain {
		return ErrPending
	}
	return err
}

// choice returns an entry as the choice for a request.
func (r *resolution) choice(req *request, e *content.Entry) *Choice {
	c := &Choice{
		Catalog: req.sub.Catalog, Package: e.Channel.Package.Name, Channel: e.Channel.Name, Bundle: e.Bundle.Name,
		Replaces: e.Replaces, Entry: e, Because: r.because(req, e), Back: r.backwards(req.sub, e),
	}
	if req.sub.Installed != "" {
		c.Replaces = req.sub.Installed
	}
	return c
}

// bySeniority sorts the Subscriptions of users before those that were created for dependencies. Within each,
// those that hold an installed version come first, whatever their age. A Subscription that is corrected later
// must not take over a version that another one has installed.
func bySeniority(subscriptions []Subscription) []*Subscription {
	sorted := make([]*Subscription, len(subscriptions))
	for i := range subscriptions {
		sorted[i] = &subscriptions[i]
	}
	slices.SortStableFunc(sorted, func(a, b *Subscription) int {
		if a.Generated != b.Generated {
			return first(!a.Generated, !b.Generated)
		}
		return first(a.Holds, b.Holds)
	})
	return sorted
}
