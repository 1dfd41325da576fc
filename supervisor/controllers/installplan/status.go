package installplan

import (
	"context"
	"fmt"
	"maps"
	"slices"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/chandlery/chandlery/supervisor/api"
)

// setInstalled sets the condition Installed: true without a reason, else false
// with it. A condition that says the same as before keeps its times.
func setInstalled(p *operatorsv1alpha1.InstallPlan, reason operatorsv1alpha1.InstallPlanConditionReason, message string, now metav1.Time) {
	wanted := operatorsv1alpha1.ConditionMet(operatorsv1alpha1.InstallPlanInstalled, &now)
	if reason != "" {
		wanted = operatorsv1alpha1.ConditionFailed(operatorsv1alpha1.InstallPlanInstalled, reason, message, &now)
	}
	current := p.Status.GetCondition(operatorsv1alpha1.InstallPlanInstalled)
	if current.Status == wanted.Status && current.Reason == wanted.Reason && current.Message == wanted.Message {
		return
	}
	p.Status.SetCondition(wanted)
}

// passCheck removes the condition that kept a plan from being executed; what
// comes of the execution is not known yet.
func passCheck(p *operatorsv1alpha1.InstallPlan) {
	dropInstalled(p, operatorsv1alpha1.InstallPlanReasonInstallCheckFailed)
}

// dropInstalled removes the condition Installed if it has a reason.
func dropInstalled(p *operatorsv1alpha1.InstallPlan, reason operatorsv1alpha1.InstallPlanConditionReason) {
	p.Status.Conditions = slices.DeleteFunc(p.Status.Conditions, func(c operatorsv1alpha1.InstallPlanCondition) bool {
		return c.Type == operatorsv1alpha1.InstallPlanInstalled && c.Reason == reason
	})
}

// writeCause writes the cause of a plan if it has changed, before the status that it explains. Both plans then
// have the version with the cause.
func writeCause(ctx context.Context, writer client.Writer, before, after *operatorsv1alpha1.InstallPlan) error {
	if before.Annotations[api.AnnotationCause] == after.Annotations[api.AnnotationCause] {
		return nil
	}
	written := before.DeepCopy()
	written.Annotations = maps.Clone(after.Annotations)
	if err := writer.Patch(ctx, written, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("writing the cause of InstallPlan %s/%s: %w", after.Namespace, after.Name, err)
	}
	before.ObjectMeta = *written.ObjectMeta.DeepCopy()
	after.ObjectMeta = written.ObjectMeta
	return nil
}

// writeStatus writes the status when it says something new. The write carries
// the version that was read: the list of steps is replaced as a whole, and a
// leader that has been replaced must not write over its successor's. written says
// whether there was anything to say.
func (r *Reconciler) writeStatus(ctx context.Context, before, after *operatorsv1alpha1.InstallPlan) (written bool, err error) {
	if equality.Semantic.DeepEqual(before.Status, after.Status) {
		return false, nil
	}
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := r.client.Status().Patch(ctx, after, patch); err != nil {
		return false, fmt.Errorf("writing the status of InstallPlan %s/%s: %w", after.Namespace, after.Name, err)
	}
	if before.Status.Phase == after.Status.Phase {
		return true, nil
	}
	log.FromContext(ctx).Info("Moved plan to phase", "phase", after.Status.Phase, "from", before.Status.Phase, "steps", len(after.Status.Plan))
	transitions.WithLabelValues(string(after.Status.Phase)).Inc()
	if after.Status.Phase == operatorsv1alpha1.InstallPlanPhaseFailed {
		recordFailure(r.recorder, after)
	}
	return true, nil
}
