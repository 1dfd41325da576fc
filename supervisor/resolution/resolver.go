package resolution

import (
	"context"
	"maps"
	"slices"
)

// Resolve returns an outcome for every Subscription of a namespace. When ctx ends, those without an outcome get its
// error.
func Resolve(ctx context.Context, in Input) Solution {
	return resolve(ctx, &in, maxSteps)
}

// resolve is Resolve with a limit of solver steps for each group, and again for its parts if the whole has no
// solution.
func resolve(ctx context.Context, in *Input, steps int) Solution {
	res, solution := newResolver(in)
	return res.complete(ctx, solution, res.solve(ctx, steps), steps)
}

// resolver resolves the Subscriptions of a namespace. It holds the input with its indexes.
type resolver struct {
	*Input

	evaluator *evaluator
	operators *operators
	providers *providers
	finder    *finder
	// requests are in order of seniority.
	requests []*request
	// owner holds the request to which a present operator belongs; none if it belongs to no Subscription.
	owner map[*Operator]*request
}

// newResolver returns a resolver, and the outcomes that are known already. A Subscription without candidates, or in
// conflict with a senior one, has an outcome and no request.
func newResolver(in *Input) (*resolver, Solution) {
	e := newEvaluator()
	ops := newOperators(in.Operators, e)
	res := &resolver{
		Input: in, evaluator: e, operators: ops, providers: newProviders(in, ops, e),
		finder: &finder{catalogs: in.Catalogs, operators: ops}, owner: map[*Operator]*request{},
	}
	known := Solution{}
	d := duplicates{finder: res.finder, seniors: map[string]*Subscription{}}
	for _, sub := range bySeniority(in.Subscriptions) {
		if err := d.check(sub); err != nil {
			known[sub.Name] = Outcome{Err: err}
			continue
		}
		req, outcome := res.finder.newRequest(sub)
		known[sub.Name] = outcome
		if req != nil {
			res.addRequest(req)
		}
	}
	return res, known
}

func (res *resolver) addRequest(req *request) {
	res.requests = append(res.requests, req)
	res.providers.include(req.sub.Catalog, req.entries)
	if req.installed != nil && res.owner[req.installed] == nil {
		res.owner[req.installed] = req
	}
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
			return trueFirst(!a.Generated, !b.Generated)
		}
		return trueFirst(a.OwnsInstalled, b.OwnsInstalled)
	})
	return sorted
}

// solve returns the results of all groups. Groups with conflicting results are merged and solved again.
func (res *resolver) solve(ctx context.Context, steps int) []*groupResult {
	groups := res.related()
	results := make([]*groupResult, len(groups))
	for {
		for i, group := range groups {
			if results[i] == nil {
				s := groupSolver{resolver: res, group: group, steps: steps}
				results[i] = s.solve(ctx)
			}
		}
		merged := res.mergeConflicting(groups, results)
		if len(merged) == len(groups) {
			return results
		}
		groups, results = merged, unchanged(merged, groups, results)
	}
}

// unchanged returns the results of the groups that did not change; nil for the others.
func unchanged(merged, groups [][]*request, results []*groupResult) []*groupResult {
	kept := make([]*groupResult, len(merged))
	for i, group := range merged {
		for j, old := range groups {
			if slices.Equal(group, old) {
				kept[i] = results[j]
			}
		}
	}
	return kept
}

// complete adds the outcomes of all requests to a solution.
func (res *resolver) complete(ctx context.Context, known Solution, results []*groupResult, steps int) Solution {
	solution := maps.Clone(known)
	outcomes := newOutcomes(res, results)
	for _, a := range results {
		for _, req := range a.group {
			if !req.sub.InProgress {
				solution[req.sub.Name] = outcomes.of(a, req)
			}
		}
	}
	r := newDependencyRepairer(res, results, steps)
	for _, req := range res.requests {
		if choices := r.repair(ctx, req); len(choices) > 0 {
			outcome := solution[req.sub.Name]
			outcome.Dependencies = choices
			solution[req.sub.Name] = outcome
		}
	}
	return solution
}
