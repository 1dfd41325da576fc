package subscription

import (
	"context"
	"fmt"
	"slices"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// superseded finds the plans that wait for an approval which must not come any
// more, or for steps that nobody is going to write: for every Subscription they serve
// there is another answer by now. Approved later, such a plan would install a version
// beside the newer one.
func superseded(o *observation, decisions []*decision, plans map[string]*operatorsv1alpha1.InstallPlan) []*operatorsv1alpha1.InstallPlan {
	byUID := map[types.UID]*decision{}
	for _, d := range decisions {
		byUID[d.subscription.UID] = d
	}
	var found []*operatorsv1alpha1.InstallPlan
	for _, p := range o.plans {
		waits := p.Status.Phase == operatorsv1alpha1.InstallPlanPhaseRequiresApproval && !p.Spec.Approved
		if waits && !slices.ContainsFunc(p.Spec.ClusterServiceVersionNames, func(csv string) bool { return !o.isPresent(csv) }) {
			// Somebody asks again for the approval of what is there: no harm is in it.
			continue
		}
		if (waits || unmade(p)) && unwanted(o, p, byUID, plans) {
			found = append(found, p)
		}
	}
	return found
}

// unwanted says whether none of the Subscriptions that a plan serves is heading
// for it. Without an answer, or with something under way, a Subscription may
// come back to it.
func unwanted(
	o *observation, p *operatorsv1alpha1.InstallPlan, byUID map[types.UID]*decision, plans map[string]*operatorsv1alpha1.InstallPlan,
) bool {
	served := 0
	for _, ref := range p.OwnerReferences {
		d := byUID[ref.UID]
		if d == nil {
			continue
		}
		served++
		decided := plans[d.subscription.Name]
		answered := d.err == nil && (decided != nil || o.free(d))
		if !answered || (decided != nil && decided.Name == p.Name) {
			return false
		}
	}
	return served > 0
}

// retire deletes plans that nobody may approve any more. One that was approved
// at this very moment has another version by now and stays.
func (r *Reconciler) retire(ctx context.Context, plans []*operatorsv1alpha1.InstallPlan) error {
	for _, p := range plans {
		err := r.client.Delete(ctx, p, client.Preconditions{UID: &p.UID, ResourceVersion: &p.ResourceVersion})
		if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return fmt.Errorf("deleting InstallPlan %s/%s, which another one supersedes: %w", p.Namespace, p.Name, err)
		}
		log.FromContext(ctx).Info("Deleted superseded plan", "installPlan", p.Name, "installs", p.Spec.ClusterServiceVersionNames)
	}
	return nil
}
