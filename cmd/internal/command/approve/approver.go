package approve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/cmd/internal/plansummary"
	"github.com/chandlery/chandlery/supervisor/plansteps"
)

// maxTries bounds the attempts to approve an InstallPlan to which other clients write.
const maxTries = 5

// approver approves InstallPlans.
type approver struct {
	client client.Client
	agent  string // the field manager of the approval
	dryRun bool
	// kinds are the kinds that the supervisor allows in bundles besides OLM's.
	kinds plansteps.Kinds
}

// results returns what each InstallPlan would change.
func (a approver) results(ctx context.Context, w *namespaceObjects, plans []selectedPlan) []result {
	results := make([]result, 0, len(plans))
	for _, c := range plans {
		one := result{Summary: plansummary.Of(c.plan, w.versions), Result: unchanged, Why: c.why}
		if a.dryRun && c.why == "" {
			one.dryRunResult = dryRunObjects(ctx, a.client, c.plan, a.kinds)
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
			why, err := a.approve(ctx, c.plan)
			switch {
			case err != nil:
				failures = append(failures, err)
				one.Why = err.Error()
			case why != "":
				one.Why = why
			case a.dryRun:
				one.Result = dryRun
			default:
				one.Result, one.Approved = approved, true
			}
		}
		results = append(results, one)
	}
	return results, errors.Join(failures...)
}

// Approve approves an InstallPlan as it was read. agent is the field manager. It returns the reason if there is nothing to
// approve any more.
func Approve(ctx context.Context, c client.Client, agent string, p *operatorsv1alpha1.InstallPlan) (why string, err error) {
	return approver{client: c, agent: agent}.approve(ctx, p)
}

// approve approves an InstallPlan as it was shown. It returns the reason if there is nothing to approve any more.
func (a approver) approve(ctx context.Context, p *operatorsv1alpha1.InstallPlan) (string, error) {
	version := p.ResourceVersion
	for range maxTries {
		err := a.patch(ctx, p, version)
		if err == nil {
			return "", nil
		}
		if !apierrors.IsConflict(err) {
			return "", approvalError(p, err)
		}
		var now operatorsv1alpha1.InstallPlan
		if err := a.client.Get(ctx, client.ObjectKeyFromObject(p), &now); err != nil {
			return "", approvalError(p, err)
		}
		switch {
		case now.UID != p.UID || contentOf(&now) != contentOf(p):
			return "", fmt.Errorf("InstallPlan %s/%s changed after it was shown, and was not approved; check it again", p.Namespace, p.Name)
		case whyNotWaiting(&now) != "":
			return whyNotWaiting(&now), nil
		}
		version = now.ResourceVersion
	}
	return "", fmt.Errorf("InstallPlan %s/%s changes so often that %d attempts to approve it failed; try again", p.Namespace, p.Name, maxTries)
}

// contentOf returns what the user decides on: the versions and the planned objects.
func contentOf(p *operatorsv1alpha1.InstallPlan) string {
	steps := make([]operatorsv1alpha1.StepResource, 0, len(p.Status.Plan))
	for _, step := range p.Status.Plan {
		if step != nil {
			steps = append(steps, step.Resource)
		}
	}
	text, err := json.Marshal([]any{p.Spec.ClusterServiceVersionNames, steps})
	if err != nil {
		panic(err) //nolint:forbidigo // texts always marshal
	}
	return string(text)
}

// patch approves an InstallPlan if it still has a resource version.
func (a approver) patch(ctx context.Context, p *operatorsv1alpha1.InstallPlan, version string) error {
	text, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"resourceVersion": version, "uid": p.UID},
		"spec":     map[string]any{"approved": true},
	})
	if err != nil {
		return fmt.Errorf("encoding the patch: %w", err)
	}
	options := []client.PatchOption{client.FieldOwner(a.agent)}
	if a.dryRun {
		options = append(options, client.DryRunAll)
	}
	return a.client.Patch(ctx, p.DeepCopy(), client.RawPatch(types.MergePatchType, text), options...)
}

// ErrDeleted is returned for an InstallPlan that no longer exists. The supervisor deletes a plan that another one replaces.
var ErrDeleted = errors.New("was deleted before it could be approved")

// approvalError returns the error for an InstallPlan that could not be approved, with a remedy.
func approvalError(p *operatorsv1alpha1.InstallPlan, err error) error {
	switch {
	case apierrors.IsForbidden(err):
		return fmt.Errorf("approving InstallPlan %s/%s: %w; %s", p.Namespace, p.Name, err, missingRule("installplans", "patch"))
	case apierrors.IsNotFound(err):
		return fmt.Errorf("InstallPlan %s/%s %w", p.Namespace, p.Name, ErrDeleted)
	default:
		return fmt.Errorf("approving InstallPlan %s/%s: %w", p.Namespace, p.Name, err)
	}
}
