package resolver

import (
	"context"
	"errors"
	"slices"

	"github.com/chandlery/chandlery/supervisor/catalogs/content"
	"github.com/chandlery/chandlery/supervisor/resolver/sat"
)

// Resolve returns an outcome for every Subscription of a problem. When ctx ends, those without an answer get
// its error.
func Resolve(ctx context.Context, p Problem) Solution {
	return newResolution(&p, maxSteps).resolve(ctx)
}

// resolution is the state of solving a problem.
type resolution struct {
	*input

	// steps bounds the work of the solver on a group, and again on its parts if the whole has no solution.
	steps    int
	solution Solution
}

func newResolution(p *Problem, steps int) *resolution {
	in, known := newInput(p)
	return &resolution{input: in, steps: steps, solution: known}
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
		for _, n := range r.operators.dependents[req.installed] {
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
			a.uncertain = r.providers.pending() || m.uncertain(a.taken)
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
			outcome.Install = r.finder.choice(req, e)
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
		return Outcome{Held: r.finder.heldByPin(req.sub)}
	case req.sub.Pin != "" && req.chosen(a.taken) == nil:
		return Outcome{Err: r.orPending(a, a.held[req])}
	case req.installed != nil && len(req.entries) == 0:
		return Outcome{Held: r.finder.unreadableRange(req.sub)}
	default:
		return Outcome{Held: a.held[req]}
	}
}

// orPending returns ErrPending if a catalog that is being read may have the missing version, and the error
// otherwise.
func (r *resolution) orPending(a *answer, err error) error {
	if a.uncertain {
		return ErrPending
	}
	return err
}
