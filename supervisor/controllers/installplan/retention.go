package installplan

import (
	"cmp"
	"slices"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// maxFinishedPlans is the number of finished plans that are kept in each namespace.
const maxFinishedPlans = 5

// plansToDelete returns the finished plans of a namespace that may be deleted. It keeps the newest
// ones, those that a Subscription refers to, and those that a Subscription does not show yet. It
// never returns a plan that is in progress or waits for approval.
func plansToDelete(plans []operatorsv1alpha1.InstallPlan, subscriptions []operatorsv1alpha1.Subscription, keep int) []*operatorsv1alpha1.InstallPlan {
	referenced := map[types.UID]bool{}
	named := map[string]bool{}
	shown := map[types.UID]int{}
	for i := range subscriptions {
		shown[subscriptions[i].UID] = subscriptions[i].Status.InstallPlanGeneration
		if ref := subscriptions[i].Status.InstallPlanRef; ref != nil {
			referenced[ref.UID], named[ref.Name] = true, true
		}
	}
	var finished []*operatorsv1alpha1.InstallPlan
	for i := range plans {
		if p := &plans[i]; isFinished(p) && p.DeletionTimestamp.IsZero() {
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
		notShown := slices.ContainsFunc(p.OwnerReferences, func(ref metav1.OwnerReference) bool {
			generation, present := shown[ref.UID]
			return present && generation < p.Spec.Generation
		})
		return referenced[p.UID] || named[p.Name] || notShown
	})
}

// isFinished reports whether a plan is complete or failed.
func isFinished(p *operatorsv1alpha1.InstallPlan) bool {
	return p.Status.Phase == operatorsv1alpha1.InstallPlanPhaseComplete || p.Status.Phase == operatorsv1alpha1.InstallPlanPhaseFailed
}
