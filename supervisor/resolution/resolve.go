package resolution

import (
	"context"
	"maps"
	"slices"
)

// Resolve returns an outcome for every Subscription of a problem. When ctx ends, those without an answer get
// its error.
func Resolve(ctx context.Context, p Problem) Solution {
	return resolve(ctx, &p, maxSteps)
}

// resolve is Resolve with a limit of solver steps for each group, and again for its parts if the whole has no
// solution.
func resolve(ctx context.Context, p *Problem, steps int) Solution {
	in, solution := newInput(p)
	return in.complete(ctx, solution, in.solve(ctx, steps), steps)
}

// solve returns the answers of all groups. Groups with conflicting answers are merged and solved again.
func (in *input) solve(ctx context.Context, steps int) []*answer {
	groups := in.related()
	answers := make([]*answer, len(groups))
	for {
		for i, group := range groups {
			if answers[i] == nil {
				s := groupSolver{input: in, group: group, steps: steps}
				answers[i] = s.solve(ctx)
			}
		}
		merged := in.mergeConflicting(groups, answers)
		if len(merged) == len(groups) {
			return answers
		}
		groups, answers = merged, unchanged(merged, groups, answers)
	}
}

// unchanged returns the answers of the groups that did not change; nil for the others.
func unchanged(merged, groups [][]*request, answers []*answer) []*answer {
	kept := make([]*answer, len(merged))
	for i, group := range merged {
		for j, old := range groups {
			if slices.Equal(group, old) {
				kept[i] = answers[j]
			}
		}
	}
	return kept
}

// complete adds the outcomes of all requests to a solution.
func (in *input) complete(ctx context.Context, known Solution, answers []*answer, steps int) Solution {
	solution := maps.Clone(known)
	outcomes := newOutcomes(in, answers)
	for _, a := range answers {
		for _, req := range a.group {
			if !req.sub.Frozen {
				solution[req.sub.Name] = outcomes.of(a, req)
			}
		}
	}
	r := newRepairer(in, answers, steps)
	for _, req := range in.requests {
		if choices := r.repair(ctx, req); len(choices) > 0 {
			outcome := solution[req.sub.Name]
			outcome.Dependencies = choices
			solution[req.sub.Name] = outcome
		}
	}
	return solution
}
