package dryrun

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/chandlery/chandlery/supervisor/resolution"
)

// maxWaves is the maximum number of waves. The longest channels in use have some hundred versions.
const maxWaves = 1000

// solver has the signature of resolution.Resolve.
type solver func(context.Context, resolution.Input) resolution.Solution

// Run predicts what would happen, wave by wave. The error is the error of ctx. Errors of a Subscription are part
// of the result.
func Run(ctx context.Context, r Request) (*Result, error) {
	return newSimulation(r).run(ctx, resolution.Resolve)
}

// simulation is a dry run in progress.
type simulation struct {
	request Request
	state   *state
	result  *Result
	// errs holds the first error of each Subscription.
	errs map[string]error
	// plans is the number of InstallPlans so far.
	plans int
}

func newSimulation(r Request) *simulation {
	return &simulation{
		request: r, state: newState(r), errs: map[string]error{},
		result: &Result{
			Namespace: r.Input.Namespace, Blocked: r.Blocked, Notes: r.Notes, Catalogs: sources(r),
			// Lists in JSON are empty, not null.
			Steps: []Step{}, Refusals: []Refusal{}, Unknown: []Refusal{}, UpToDate: []InstalledVersion{},
		},
	}
}

// sources returns the catalogs of a request, sorted by name.
func sources(r Request) []Source {
	out := []Source{}
	for key, c := range r.Input.Catalogs {
		s := Source{Catalog: key.String(), From: r.Catalogs[key]}
		if c.Content != nil {
			s.Packages = len(c.Content.Packages())
		}
		if c.Err != nil {
			s.Error = catalogProblem(c.Err)
		}
		out = append(out, s)
	}
	slices.SortFunc(out, func(a, b Source) int { return strings.Compare(a.Catalog, b.Catalog) })
	return out
}

// run continues until a wave installs nothing.
func (s *simulation) run(ctx context.Context, solve solver) (*Result, error) {
	s.result.UnderWay = s.state.completeInProgress(s.request.Stuck)
	for wave := 1; ; wave++ {
		solution := solve(ctx, s.state.input)
		if err := context.Cause(ctx); err != nil {
			return nil, fmt.Errorf("looking ahead in namespace %s: %w", s.request.Input.Namespace, err)
		}
		if wave > maxWaves {
			s.result.Notes = append(s.result.Notes, fmt.Sprintf("more would follow: this looks no further than %d updates in a row", maxWaves))
			return s.finish(solution), nil
		}
		solution = s.state.endRefusedPlans(s.state.endCycles(solution), &s.request, s.result.withSteps())
		if !s.addWave(wave, solution) {
			return s.finish(solution), nil
		}
	}
}

// addWave adds the steps of one wave, and marks them as done. It reports whether there are any.
func (s *simulation) addWave(wave int, solution resolution.Solution) bool {
	for name, outcome := range solution {
		if outcome.Err != nil && s.errs[name] == nil {
			s.errs[name] = outcome.Err
		}
	}
	first := len(s.result.Steps)
	before := slices.Clone(s.state.input.Operators)
	plans := installPlans(s.state.input.Subscriptions, solution)
	for _, plan := range plans {
		s.plans++
		approval := s.approval(plan.subscriptions)
		for _, c := range plan.ordered() {
			step := newStep(c, before)
			step.Wave, step.Plan, step.Approval, step.Order = wave, s.plans, approval, len(s.result.Steps)+1
			step.Requesters = s.state.requesters(c, plan.served[c.Bundle])
			s.result.Steps = append(s.result.Steps, step)
			s.state.install(c, plan.served[c.Bundle])
		}
	}
	for i := range s.result.Steps[first:] {
		step := &s.result.Steps[first+i]
		step.Needs = s.state.needs(step.Bundle)
	}
	return len(plans) > 0
}

// approval returns Manual if one of the Subscriptions of a plan requires it.
func (s *simulation) approval(subscriptions []string) Approval {
	if slices.ContainsFunc(subscriptions, func(name string) bool { return s.request.Manual[name] }) {
		return Manual
	}
	return Automatic
}

// newStep describes the installation of a version.
func newStep(c *resolution.Choice, before []resolution.Operator) Step {
	step := Step{Because: c.Because, Change: Change{
		Action: Install, Package: c.Package, Channel: c.Channel, Catalog: c.Catalog.String(), Bundle: c.Bundle,
	}}
	if i := operator(before, c.Replaces); i >= 0 {
		step.Action, step.Replaces, step.FromVersion = Update, c.Replaces, version(before[i].Subject.Version)
	}
	if c.Entry == nil {
		return step
	}
	b := c.Entry.Bundle
	step.Version, step.Image = version(b.Subject.Version), b.Image
	deprecated := func(what, message string) {
		if message != "" {
			step.Deprecations = append(step.Deprecations, what+" is deprecated: "+message)
		}
	}
	deprecated("package "+c.Package, b.Package.Deprecation)
	deprecated("channel "+c.Channel, c.Entry.Channel.Deprecation)
	deprecated("bundle "+c.Bundle, b.Deprecation)
	return step
}
