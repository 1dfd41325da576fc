package approve

import (
	"context"
	"errors"

	"github.com/chandlery/chandlery/cmd/internal/approval"
	"github.com/chandlery/chandlery/cmd/internal/plansummary"
	"github.com/chandlery/chandlery/supervisor/plansteps"
)

// approver approves InstallPlans.
type approver struct {
	approval.Approver

	// kinds are the kinds that the supervisor allows in bundles besides OLM's.
	kinds plansteps.Kinds
}

// results returns what each InstallPlan would change.
func (a approver) results(ctx context.Context, w *namespaceObjects, plans []selectedPlan) []result {
	results := make([]result, 0, len(plans))
	for _, c := range plans {
		one := result{Summary: plansummary.Of(c.plan, w.versions), Result: unchanged, Why: c.why}
		if a.DryRun && c.why == "" {
			one.dryRunResult = dryRunObjects(ctx, a.Client, c.plan, a.kinds)
		}
		results = append(results, one)
	}
	return results
}

// approveAll approves the waiting InstallPlans and returns the results. One failure does not stop the others.
func (a approver) approveAll(ctx context.Context, plans []selectedPlan, shown []result) ([]result, error) {
	var failures []error
	results := make([]result, 0, len(plans))
	for i, c := range plans {
		one := shown[i]
		if c.why == "" {
			why, err := a.Approve(ctx, c.plan)
			switch {
			case err != nil:
				failures = append(failures, err)
				one.Why = err.Error()
			case why != "":
				one.Why = why
			case a.DryRun:
				one.Result = dryRun
			default:
				one.Result, one.Approved = approved, true
			}
		}
		results = append(results, one)
	}
	return results, errors.Join(failures...)
}
