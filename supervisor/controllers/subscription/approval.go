package subscription

import (
	"context"
	"fmt"
	"slices"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/apply"
)

// approvalOf returns the approval of a plan for the Subscriptions that it serves: Manual when one
// of them asks for it.
func approvalOf(served []*decision) operatorsv1alpha1.Approval {
	manual := slices.ContainsFunc(served, func(d *decision) bool {
		return d.subscription.GetInstallPlanApproval() == operatorsv1alpha1.ApprovalManual
	})
	if manual {
		return operatorsv1alpha1.ApprovalManual
	}
	return operatorsv1alpha1.ApprovalAutomatic
}

// ensureApproval updates the approval of a waiting plan after a change of its Subscriptions. It
// does not change a value that a user set on the plan, and never revokes an approval.
func (w *planWriter) ensureApproval(ctx context.Context, p *operatorsv1alpha1.InstallPlan, approval operatorsv1alpha1.Approval) error {
	if p.Spec.Approved || p.Annotations[api.AnnotationApproval] == string(approval) {
		return nil
	}
	before := p.DeepCopy()
	metav1.SetMetaDataAnnotation(&p.ObjectMeta, api.AnnotationApproval, string(approval))
	p.Spec.Approval = approval
	p.Spec.Approved = approval == operatorsv1alpha1.ApprovalAutomatic
	// The approval marks a record as complete. On a plan whose record was stripped after it was
	// read, it would hide the loss.
	if err := apply.Patch(ctx, w.client, p, apply.MergeFromLocked(before), apply.UserAgent); err != nil {
		return fmt.Errorf("changing the approval of InstallPlan %s/%s to %s: %w", p.Namespace, p.Name, approval, err)
	}
	log.FromContext(ctx).Info("Changed approval of plan", "installPlan", p.Name, "approval", approval)
	return nil
}
