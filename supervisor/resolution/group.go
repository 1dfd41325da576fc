package resolution

import (
	"context"
	"errors"
	"maps"

	"github.com/chandlery/chandlery/supervisor/resolution/sat"
)

// maxSteps is the maximum number of solver steps for a group: some seconds.
const maxSteps = 8_000

// groupSolver finds versions for a group of requests that are solved together.
type groupSolver struct {
	*resolver

	group []*request
	// steps bounds the work of the solver on the group, and again on its parts if the whole has no solution.
	steps int
}

// groupResult is the result for a group.
type groupResult struct {
	group []*request
	taken []node
	// failed holds an error for each request of the group that gets no version.
	failed map[*request]error
	// constrained holds the reason for each request that does not get its best candidate.
	constrained map[*request]error
	// competing are requests of other groups that affect the problem. If there are any, it is not solved.
	competing []*request
	// uncertain is true if a catalog that is being read may have better versions.
	uncertain bool
}

// solve solves the group: with the best alternatives if possible, else with all alternatives. If that fails, it
// leaves out the requests that come last.
func (s *groupSolver) solve(ctx context.Context) *groupResult {
	allowance := sat.NewAllowance(s.steps)
	p, taken, err := s.try(ctx, narrow, allowance)
	if s.divisible(err) || (err == nil && len(p.competing) == 0 && !p.optimal(taken)) {
		p, taken, err = s.try(ctx, wide, allowance)
	}
	switch {
	case s.divisible(err):
		return s.solveParts(ctx, p)
	case err != nil:
		return &groupResult{group: s.group, failed: failAll(s.group, err)}
	case len(p.competing) > 0:
		return &groupResult{group: s.group, competing: p.competing}
	default:
		constrained := s.constrained(ctx, p, taken, nil)
		return &groupResult{group: s.group, taken: taken, constrained: constrained, uncertain: p.uncertain(taken)}
	}
}

// divisible reports whether a part of the group may have a result although the whole has none.
func (s *groupSolver) divisible(err error) bool {
	_, limit := errors.AsType[*sat.LimitError](err)
	return errors.Is(err, errConflict) || (limit && len(s.group) > 1)
}

// try returns the problem of the group and its best solution. A problem with competing requests is not solved.
func (s *groupSolver) try(ctx context.Context, b breadth, allowance *sat.Allowance) (*groupProblem, []node, error) {
	p, err := s.newGroupProblem(ctx, s.group, b, allowance)
	if err != nil || len(p.competing) > 0 {
		return p, nil, err
	}
	taken, err := p.solve(ctx, nil)
	return p, taken, err
}

// solveParts solves as much of the group as possible.
func (s *groupSolver) solveParts(ctx context.Context, p *groupProblem) *groupResult {
	p.allowance = sat.NewAllowance(s.steps)
	taken, failed := s.accept(ctx, p)
	return &groupResult{
		group: s.group, taken: taken, failed: failed, constrained: s.constrained(ctx, p, taken, failed),
		uncertain: s.providers.pending() || p.uncertain(taken),
	}
}

// accept adds the requests of the group one by one, in order of seniority, as long as all of them can be met. The
// others fail with the constraints that they conflict with. Installed versions can always remain as they are.
func (s *groupSolver) accept(ctx context.Context, p *groupProblem) (taken []node, errs map[*request]error) {
	errs = map[*request]error{}
	leftOut := map[*request]bool{}
	for _, req := range s.group {
		leftOut[req] = req.installed == nil
	}
	for i, req := range s.group {
		wasLeftOut := leftOut[req]
		leftOut[req] = false
		next, err := p.solve(ctx, leftOut)
		switch {
		case err == nil:
			taken = next
			continue
		case !errors.Is(err, errConflict):
			// A problem that took too long once would do so again.
			maps.Copy(errs, failAll(s.group[i:], err))
			return taken, errs
		}
		errs[req] = s.explainFailure(ctx, p, req, leftOut)
		leftOut[req] = wasLeftOut
	}
	return taken, errs
}

// failAll returns an error for each request.
func failAll(group []*request, err error) map[*request]error {
	errs := map[*request]error{}
	for _, req := range group {
		errs[req] = err
	}
	return errs
}

// explainFailure returns why a request cannot be met together with those that are not left out.
func (s *groupSolver) explainFailure(ctx context.Context, p *groupProblem, req *request, leftOut map[*request]bool) error {
	few, err := s.newGroupProblem(ctx, s.group, sample, p.allowance)
	if err != nil {
		return err
	}
	reasons, err := few.contradiction(ctx, leftOut)
	if err != nil {
		return err
	}
	return s.explain(req, reasons, false)
}

// constrained returns why requests do not get their best candidates.
func (s *groupSolver) constrained(ctx context.Context, p *groupProblem, taken []node, failed map[*request]error) map[*request]error {
	errs := map[*request]error{}
	for _, req := range s.group {
		if failed[req] != nil || len(req.entries) == 0 || req.chosen(taken) == req.entries[0] {
			continue
		}
		reasons, err := s.conflict(ctx, p, req, taken, failed)
		if err == nil {
			errs[req] = s.explain(req, reasons, true)
		}
	}
	return errs
}

// conflict returns the constraints that conflict with the best candidate of a request, given the versions of the
// others.
func (s *groupSolver) conflict(ctx context.Context, p *groupProblem, req *request, taken []node, failed map[*request]error) ([]reason, error) {
	few, err := s.newGroupProblem(ctx, s.group, sample, p.allowance)
	if err != nil {
		return nil, err
	}
	leftOut := map[*request]bool{}
	for _, other := range s.group {
		leftOut[other] = failed[other] != nil
		if e := other.chosen(taken); e != nil && other != req {
			few.fix(other, e, fixed)
		}
	}
	few.fix(req, req.entries[0], preferred)
	return few.contradiction(ctx, leftOut)
}
