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
	// wishes are the requests: the Subscriptions that may get a version, in order of seniority.
	wishes []*wish
	// catalogs are in order of rank.
	catalogs  []CatalogKey
	byName    map[string]*Operator
	byPackage map[string][]*Operator
	byAPI     map[bundles.GVK][]*Operator
	// holder holds the request to which a present operator belongs; none if no Subscription claims it.
	holder map[*Operator]*wish
	// needs are the constraints of other operators that an operator meets.
	needs map[*Operator][]need
	asked map[offer][]*content.Entry
	// aside are candidates that are not on the chain of their channel.
	aside map[CatalogKey][]*content.Entry
	parts map[*constraint.Constraint][]constraint.Constraint
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

// need is a constraint of a present operator.
type need struct {
	of         *Operator
	constraint *constraint.Constraint
}

// wish is a request: a Subscription that may get a version.
type wish struct {
	sub *Subscription
	// entries are the candidates, best first; none if there is no newer version or an operation is in progress.
	entries []*content.Entry
	// installed is the installed operator; nil for none.
	installed *Operator
}

// alternatives returns the versions that satisfy the request, best first.
func (w *wish) alternatives() []node {
	nodes := make([]node, 0, len(w.entries)+1)
	for _, e := range w.entries {
		nodes = append(nodes, node{catalog: w.sub.Catalog, entry: e})
	}
	if w.installed != nil {
		nodes = append(nodes, node{operator: w.installed})
	}
	return nodes
}

func newResolution(p *Problem, steps int) *resolution {
	r := &resolution{
		Problem: p, steps: steps, solution: Solution{}, catalogs: p.rank(),
		byName: map[string]*Operator{}, byPackage: map[string][]*Operator{}, byAPI: map[bundles.GVK][]*Operator{},
		holder: map[*Operator]*wish{}, needs: map[*Operator][]need{},
		asked: map[offer][]*content.Entry{}, aside: map[CatalogKey][]*content.Entry{}, parts: map[*constraint.Constraint][]constraint.Constraint{},
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
	r.gatherNeeds()
	r.gatherWishes()
	return r
}

func (r *resolution) operator(name string) *Operator { return r.byName[name] }

// gatherNeeds determines which present operators depend on which others.
func (r *resolution) gatherNeeds() {
	for i := range r.Operators {
		dependent := &r.Operators[i]
		for j := range dependent.Requires {
			r.gatherNeed(dependent, &dependent.Requires[j])
		}
	}
}

// gatherNeed records the operators that meet a constraint of an operator, or its parts if several do so
// together. A constraint that the operator itself meets is not a dependency.
func (r *resolution) gatherNeed(of *Operator, c *constraint.Constraint) {
	if c.MetBy(&of.Subject) {
		return
	}
	alone := false
	for i := range r.Operators {
		if provider := &r.Operators[i]; r.met(c, &provider.Subject) {
			r.needs[provider] = append(r.needs[provider], need{of: of, constraint: c})
			alone = true
		}
	}
	if alone {
		return
	}
	parts := r.split(c)
	for i := range parts {
		r.gatherNeed(of, &parts[i])
	}
}

// gatherWishes finds the candidates of every Subscription. A Subscription without candidates, or in conflict
// with a senior one, is answered at once.
func (r *resolution) gatherWishes() {
	senior := map[string]*Subscription{}
	for _, sub := range bySeniority(r.Subscriptions) {
		keeper, taken := senior[sub.Package]
		if taken && r.requestOf(keeper) != r.requestOf(sub) {
			r.solution[sub.Name] = Outcome{Err: r.refusal(keeper, sub)}
			continue
		}
		if !taken && r.claims(sub) {
			senior[sub.Package] = sub
		}
		r.gatherWish(sub)
	}
}

func (r *resolution) gatherWish(sub *Subscription) {
	w := &wish{sub: sub, installed: r.operator(sub.Installed)}
	entries, err := r.candidates(sub)
	if err != nil {
		r.solution[sub.Name] = Outcome{Err: err}
		return
	}
	w.entries = entries
	if sub.Frozen {
		w.entries = nil
		r.solution[sub.Name] = r.frozen(w, entries)
	}
	if len(w.alternatives()) == 0 {
		// The installed version is not among the operators of the namespace, and no newer one is available.
		r.solution[sub.Name] = Outcome{}
		return
	}
	r.wishes = append(r.wishes, w)
	for _, e := range w.entries {
		if e.Place < 0 && !slices.Contains(r.aside[sub.Catalog], e) {
			r.aside[sub.Catalog] = append(r.aside[sub.Catalog], e)
		}
	}
	if w.installed != nil && r.holder[w.installed] == nil {
		r.holder[w.installed] = w
	}
}

// frozen returns the version that would be available if no operation were in progress.
func (r *resolution) frozen(w *wish, entries []*content.Entry) Outcome {
	at := slices.IndexFunc(entries, func(e *content.Entry) bool { return e.Bundle.Err == nil })
	if at < 0 {
		return Outcome{Held: r.heldByPin(w.sub)}
	}
	return Outcome{Available: r.choice(w, entries[at])}
}

// groups joins the requests that are related from the beginning: those for the same package, and those for
// operators of which one depends on the other.
func (r *resolution) groups() [][]*wish {
	u := newUnion(r.wishes)
	byPackage := map[string]*wish{}
	for _, w := range r.wishes {
		if other := byPackage[w.sub.Package]; other != nil {
			u.join(other, w)
		}
		byPackage[w.sub.Package] = w
		if len(w.entries) == 0 {
			continue
		}
		for _, n := range r.needs[w.installed] {
			if other := r.holder[n.of]; other != nil && len(other.entries) > 0 {
				u.join(w, other)
			}
		}
	}
	return u.groups()
}

// answer is the result for a group.
type answer struct {
	group []*wish
	taken []node
	// failed holds an error for each request of the group that gets no version.
	failed map[*wish]error
	// held holds the reason for each request that does not get its best candidate.
	held map[*wish]error
	// drawn are requests of other groups that affect the problem.
	drawn  []*wish
	unsure bool
}

// answer solves a group: with the best alternatives if possible, else with all alternatives. If that fails, it
// leaves out the requests that come last.
func (r *resolution) answer(ctx context.Context, group []*wish) *answer {
	a := &answer{group: group, failed: map[*wish]error{}, held: map[*wish]error{}}
	allowance := sat.NewAllowance(r.steps)
	for _, b := range []breadth{narrow, wide} {
		m, err := r.newModel(ctx, group, b, allowance)
		if err != nil {
			return a.fail(err)
		}
		a.drawn = m.drawn
		if len(m.drawn) > 0 {
			return a
		}
		a.taken, err = m.solve(ctx, nil)
		switch {
		case err != nil && !m.divisible(err):
			return a.fail(err)
		case err == nil && m.best(a.taken):
			a.unsure = m.unsure(a.taken)
			m.holdBack(ctx, a)
			return a
		case err != nil && b == wide:
			m.allowance = sat.NewAllowance(r.steps)
			m.accept(ctx, a)
			a.unsure = r.pending() || m.unsure(a.taken)
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
	leftOut := map[*wish]bool{}
	for _, w := range m.group {
		leftOut[w] = w.installed == nil
	}
	for i, w := range m.group {
		wasLeftOut := leftOut[w]
		leftOut[w] = false
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
		a.failed[w] = m.whyNot(ctx, w, leftOut)
		leftOut[w] = wasLeftOut
	}
}

// whyNot returns why a request cannot be met together with those that are not left out.
func (m *model) whyNot(ctx context.Context, w *wish, leftOut map[*wish]bool) error {
	few, err := m.newModel(ctx, m.group, sample, m.allowance)
	if err != nil {
		return err
	}
	reasons, err := few.contradiction(ctx, leftOut)
	if err != nil {
		return err
	}
	return few.explain(w, reasons, false)
}

// failRest fails all requests of a group from an index on.
func (a *answer) failRest(err error, from int) {
	for _, w := range a.group[from:] {
		a.failed[w] = err
	}
}

// holdBack determines why requests do not get their best candidates.
func (m *model) holdBack(ctx context.Context, a *answer) {
	for _, w := range m.group {
		if a.failed[w] != nil || len(w.entries) == 0 || w.newest(a.taken) == w.entries[0] {
			continue
		}
		reasons, err := m.against(ctx, a, w)
		if err == nil {
			a.held[w] = m.explain(w, reasons, true)
		}
	}
}

// against returns the constraints that conflict with the best candidate of a request, given the versions of the
// others.
func (m *model) against(ctx context.Context, a *answer, w *wish) ([]reason, error) {
	few, err := m.newModel(ctx, m.group, sample, m.allowance)
	if err != nil {
		return nil, err
	}
	leftOut := map[*wish]bool{}
	for _, other := range m.group {
		leftOut[other] = a.failed[other] != nil
		if e := other.newest(a.taken); e != nil && other != w {
			few.insist(other, e, settled)
		}
	}
	few.insist(w, w.entries[0], newest)
	return few.contradiction(ctx, leftOut)
}

// insist requires that a request gets a certain entry.
func (m *model) insist(w *wish, e *content.Entry, why kind) {
	n := node{catalog: w.sub.Catalog, entry: e}
	m.add(sat.Constraint{Kind: sat.Mandatory, Variable: m.consider(n)}, reason{kind: why, wish: w, node: n})
}

// tell adds the answer for a group to the solution.
func (r *resolution) tell(a *answer) {
	for _, w := range a.group {
		if err := a.failed[w]; err != nil {
			r.solution[w.sub.Name] = Outcome{Err: r.orPending(a, err)}
			continue
		}
		if w.sub.Frozen {
			continue
		}
		outcome := r.heldBack(w, a)
		if e := w.newest(a.taken); e != nil {
			outcome.Install = r.choice(w, e)
			if a.unsure {
				outcome = Outcome{Err: ErrPending}
			}
		}
		r.solution[w.sub.Name] = outcome
	}
}

// heldBack returns the reason why a request does not get a newer version. If a version that is requested by
// name is not possible, it is an error and not only held back.
func (r *resolution) heldBack(w *wish, a *answer) Outcome {
	switch {
	case w.sub.Pin != "" && len(w.entries) == 0:
		return Outcome{Held: r.heldByPin(w.sub)}
	case w.sub.Pin != "" && w.newest(a.taken) == nil:
		return Outcome{Err: r.orPending(a, a.held[w])}
	case w.installed != nil && len(w.entries) == 0:
		return Outcome{Held: r.unreadableRange(w.sub)}
	default:
		return Outcome{Held: a.held[w]}
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
	if a.unsure {
		return ErrPending
	}
	return err
}

// choice returns an entry as the choice for a request.
func (r *resolution) choice(w *wish, e *content.Entry) *Choice {
	c := &Choice{
		Catalog: w.sub.Catalog, Package: e.Channel.Package.Name, Channel: e.Channel.Name, Bundle: e.Bundle.Name,
		Replaces: e.Replaces, Entry: e, Because: r.because(w, e), Back: r.backwards(w.sub, e),
	}
	if w.sub.Installed != "" {
		c.Replaces = w.sub.Installed
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
