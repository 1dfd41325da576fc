package installplan

import (
	"context"
	"fmt"
	"maps"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/apply"
)

// writeCause writes the cause of a plan if it has changed, before the status that it explains. Both
// plans then have the resource version of the write.
func writeCause(ctx context.Context, writer client.Writer, before, after *operatorsv1alpha1.InstallPlan) error {
	if before.Annotations[api.AnnotationCause] == after.Annotations[api.AnnotationCause] {
		return nil
	}
	written := before.DeepCopy()
	written.Annotations = maps.Clone(after.Annotations)
	if err := apply.Patch(ctx, writer, written, apply.MergeFromLocked(before), apply.UserAgent); err != nil {
		return fmt.Errorf("writing the cause of InstallPlan %s/%s: %w", after.Namespace, after.Name, err)
	}
	before.ObjectMeta = *written.ObjectMeta.DeepCopy()
	after.ObjectMeta = written.ObjectMeta
	return nil
}

// writeStatus writes the status of a plan if it has changed, and reports whether it has. The write
// carries the resource version that was read: it replaces the list of steps, and a former leader must
// not overwrite the status of its successor.
func writeStatus(ctx context.Context, c client.Client, recorder events.EventRecorder, before, after *operatorsv1alpha1.InstallPlan) (written bool, err error) {
	if equality.Semantic.DeepEqual(before.Status, after.Status) {
		return false, nil
	}
	if err := apply.PatchStatus(ctx, c, after, apply.MergeFromLocked(before), apply.UserAgent); err != nil {
		return false, fmt.Errorf("writing the status of InstallPlan %s/%s: %w", after.Namespace, after.Name, err)
	}
	if before.Status.Phase == after.Status.Phase {
		return true, nil
	}
	log.FromContext(ctx).Info("Moved plan to phase", "phase", after.Status.Phase, "from", before.Status.Phase, "steps", len(after.Status.Plan))
	transitions.WithLabelValues(string(after.Status.Phase)).Inc()
	if after.Status.Phase == operatorsv1alpha1.InstallPlanPhaseFailed {
		recordFailure(recorder, after)
	}
	return true, nil
}

// deleteOldPlans deletes old plans of a namespace after another plan has ended. The next
// call retries failed deletions.
func deleteOldPlans(ctx context.Context, c client.Client, last *operatorsv1alpha1.InstallPlan) {
	logger := log.FromContext(ctx)
	plans, subscriptions := &operatorsv1alpha1.InstallPlanList{}, &operatorsv1alpha1.SubscriptionList{}
	for _, list := range []client.ObjectList{plans, subscriptions} {
		if err := c.List(ctx, list, client.InNamespace(last.Namespace), readOnly); err != nil {
			logger.Error(err, "Listing old plans")
			return
		}
	}
	for i := range plans.Items {
		if plans.Items[i].UID == last.UID {
			// The cache may not have the end of this plan yet.
			plans.Items[i] = *last
		}
	}
	for _, p := range plansToDelete(plans.Items, subscriptions.Items, maxFinishedPlans) {
		// The resource version excludes a plan that was set to run again.
		err := apply.DeleteIf(ctx, c, p, apply.SameVersion(p))
		if ignoreAbsent(err) != nil {
			logger.Error(err, "Deleting an old plan", "plan", p.Name)
			continue
		}
		deletedPlans.Inc()
		logger.Info("Deleted old plan", "plan", p.Name, "generation", p.Spec.Generation, "phase", p.Status.Phase)
	}
}
