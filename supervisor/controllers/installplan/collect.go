package installplan

import (
	"cmp"
	"context"
	"slices"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// kept is how many plans of a namespace are kept that have reached their end.
const kept = 5

// superfluous gives the plans of a namespace that may go: those that have reached
// their end, but for the newest, those that a Subscription refers to, and those that it
// has not come to telling of. A plan that is under way, or waits for its approval, is
// never among them.
func superfluous(plans []operatorsv1alpha1.InstallPlan, subscriptions []operatorsv1alpha1.Subscription, keep int) []*operatorsv1alpha1.InstallPlan {
	referred := map[types.UID]bool{}
	named := map[string]bool{}
	told := map[types.UID]int{}
	for i := range subscriptions {
		told[subscriptions[i].UID] = subscriptions[i].Status.InstallPlanGeneration
		if ref := subscriptions[i].Status.InstallPlanRef; ref != nil {
			referred[ref.UID], named[ref.Name] = true, true
		}
	}
	var finished []*operatorsv1alpha1.InstallPlan
	for i := range plans {
		if p := &plans[i]; ended(p) && p.DeletionTimestamp.IsZero() {
			finished = append(finished, p)
		}
	}
	slices.SortFunc(finished, func(a, b *operatorsv1alpha1.InstallPlan) int {
		return cmp.Or(
			cmp.Compare(b.Spec.Generation, a.Spec.Generation),
			b.CreationTimestamp.Compare(a.CreationTimestamp.Time),
			cmp.Compare(a.Name, b.Name),
		)
	})
	return slices.DeleteFunc(finished[min(keep, len(finished)):], func(p *operatorsv1alpha1.InstallPlan) bool {
		untold := slices.ContainsFunc(p.OwnerReferences, func(ref metav1.OwnerReference) bool {
			generation, present := told[ref.UID]
			return present && generation < p.Spec.Generation
		})
		return referred[p.UID] || named[p.Name] || untold
	})
}

// ended says whether a plan has reached its end.
func ended(p *operatorsv1alpha1.InstallPlan) bool {
	return p.Status.Phase == operatorsv1alpha1.InstallPlanPhaseComplete || p.Status.Phase == operatorsv1alpha1.InstallPlanPhaseFailed
}

// collect deletes the plans of a namespace that may go, now that one more has
// reached its end. What cannot be deleted now is tried again after the next.
func (r *Reconciler) collect(ctx context.Context, last *operatorsv1alpha1.InstallPlan) {
	logger := log.FromContext(ctx)
	plans, subscriptions := &operatorsv1alpha1.InstallPlanList{}, &operatorsv1alpha1.SubscriptionList{}
	for _, list := range []client.ObjectList{plans, subscriptions} {
		if err := r.client.List(ctx, list, client.InNamespace(last.Namespace), readOnly); err != nil {
			logger.Error(err, "Looking for old plans")
			return
		}
	}
	for i := range plans.Items {
		if plans.Items[i].UID == last.UID {
			// The cache may not know yet that this one has ended.
			plans.Items[i] = *last
		}
	}
	for _, p := range superfluous(plans.Items, subscriptions.Items, kept) {
		// One that somebody has set going again since is another matter.
		err := r.client.Delete(ctx, p, client.Preconditions{UID: &p.UID, ResourceVersion: &p.ResourceVersion})
		if ignoreAbsent(err) != nil {
			logger.Error(err, "Deleting an old plan", "plan", p.Name)
			continue
		}
		collected.Inc()
		logger.Info("Deleted old plan", "plan", p.Name, "generation", p.Spec.Generation, "phase", p.Status.Phase)
	}
}
