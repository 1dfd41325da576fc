// Package approval approves InstallPlans.
package approval

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/cmd/internal/access"
)

// maxTries bounds the attempts to approve an InstallPlan to which other clients write.
const maxTries = 5

// Approver approves InstallPlans.
type Approver struct {
	Client client.Client
	// Agent is the field manager of the approval.
	Agent string
	// DryRun is true to let the API server only check the approval.
	DryRun bool
}

// Approve approves an InstallPlan as it was read. It returns the reason if there is nothing to approve any more. The error is
// ErrDeleted if the InstallPlan no longer exists.
func (a Approver) Approve(ctx context.Context, p *operatorsv1alpha1.InstallPlan) (string, error) {
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
		if err := a.Client.Get(ctx, client.ObjectKeyFromObject(p), &now); err != nil {
			return "", approvalError(p, err)
		}
		switch {
		case now.UID != p.UID || contentOf(&now) != contentOf(p):
			return "", fmt.Errorf("InstallPlan %s/%s changed after it was shown, and was not approved; check it again", p.Namespace, p.Name)
		case WhyNotWaiting(&now) != "":
			return WhyNotWaiting(&now), nil
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
func (a Approver) patch(ctx context.Context, p *operatorsv1alpha1.InstallPlan, version string) error {
	text, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"resourceVersion": version, "uid": p.UID},
		"spec":     map[string]any{"approved": true},
	})
	if err != nil {
		return fmt.Errorf("encoding the patch: %w", err)
	}
	options := []client.PatchOption{client.FieldOwner(a.Agent)}
	if a.DryRun {
		options = append(options, client.DryRunAll)
	}
	return a.Client.Patch(ctx, p.DeepCopy(), client.RawPatch(types.MergePatchType, text), options...)
}

// ErrDeleted is returned for an InstallPlan that no longer exists. The supervisor deletes a plan that another one replaces.
var ErrDeleted = errors.New("was deleted before it could be approved")

// approvalError returns the error for an InstallPlan that could not be approved.
func approvalError(p *operatorsv1alpha1.InstallPlan, err error) error {
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("InstallPlan %s/%s %w", p.Namespace, p.Name, ErrDeleted)
	}
	return fmt.Errorf("approving InstallPlan %s/%s: %w", p.Namespace, p.Name, err)
}

// Rule returns the permission to approve the InstallPlans of a namespace.
func Rule(namespace string) access.Rule {
	return access.Rule{Group: operatorsv1alpha1.GroupName, Resource: "installplans", Verb: "patch", Namespace: namespace}
}

// WhyNotWaiting returns the reason why there is nothing to approve; empty otherwise.
func WhyNotWaiting(p *operatorsv1alpha1.InstallPlan) string {
	switch phase := p.Status.Phase; {
	case p.DeletionTimestamp != nil:
		return "is being deleted"
	case p.Spec.Approved && p.Spec.Approval == operatorsv1alpha1.ApprovalAutomatic:
		return "needs no approval, and is in phase " + PhaseText(phase)
	case p.Spec.Approved:
		return "is approved already, and in phase " + PhaseText(phase)
	case phase == operatorsv1alpha1.InstallPlanPhaseComplete, phase == operatorsv1alpha1.InstallPlanPhaseFailed,
		phase == operatorsv1alpha1.InstallPlanPhaseInstalling:
		return "does not wait for approval: it is in phase " + PhaseText(phase)
	default:
		return ""
	}
}

// PhaseText returns the phase of an InstallPlan for users.
func PhaseText(phase operatorsv1alpha1.InstallPlanPhase) string {
	if phase == "" {
		return "none yet"
	}
	return string(phase)
}
