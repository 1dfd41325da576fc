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

// superseded returns the plans that wait for approval or steps although every Subscription they
// serve has another decision now. If approved later, such a plan would install a version beside the
// newer one.
func superseded(o *observation, decisions []*decision, plans map[string]*operatorsv1alpha1.InstallPlan) []*operatorsv1alpha1.InstallPlan {
	byUID := map[types.UID]*decision{}
	for _, d := range decisions {
		byUID[d.subscription.UID] = d
	}
	var found []*operatorsv1alpha1.InstallPlan
	for _, p := range o.plans {
		if o.idle(p) && unwanted(o, p, byUID, plans) {
			found = append(found, p)
		}
	}
	return found
}

// idle reports whether a plan waits for approval or steps, and may be deleted without loss. A plan
// is not idle if it brought all its versions and they exist: a new approval of it does no harm.
func (o *observation) idle(p *operatorsv1alpha1.InstallPlan) bool {
	waits := p.Status.Phase == operatorsv1alpha1.InstallPlanPhaseRequiresApproval && !p.Spec.Approved
	return (waits || unmade(p)) && slices.ContainsFunc(p.Spec.ClusterServiceVersionNames, func(csv string) bool {
		return !o.isPresent(csv) || o.broughtByAnother(p, csv)
	})
}

// broughtByAnother reports whether another plan has brought a version.
func (o *observation) broughtByAnother(p *operatorsv1alpha1.InstallPlan, csv string) bool {
	for _, other := range o.plans {
		if other != p && installs(other, csv) && other.Status.Phase == operatorsv1alpha1.InstallPlanPhaseComplete {
			return true
		}
	}
	return false
}

// unwanted reports whether every Subscription that a plan serves has a decision for something else.
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
		if !o.elsewhere(d, p, plans) {
			return false
		}
	}
	return served > 0 || o.orphaned(p)
}

// elsewhere reports whether a Subscription has a decision for something else than a plan. Without a
// decision, or with a version in progress, it may return to the plan.
func (o *observation) elsewhere(d *decision, p *operatorsv1alpha1.InstallPlan, plans map[string]*operatorsv1alpha1.InstallPlan) bool {
	decided := plans[d.subscription.Name]
	answered := d.err == nil && (decided != nil || o.free(d))
	return answered && (decided == nil || decided.Name != p.Name)
}

// orphaned reports whether none of the Subscriptions of a plan exists, and the plan has no owner
// references either. Garbage collection does not delete such a plan.
func (o *observation) orphaned(p *operatorsv1alpha1.InstallPlan) bool {
	return recordsAudience(p) && len(p.OwnerReferences) == 0 && len(o.lostOwners(p)) == 0
}

// parted returns, by plan, the Subscriptions that it no longer serves while it serves others. They
// have a decision for something else before the plan is executed.
func parted(
	o *observation, decisions []*decision, plans map[string]*operatorsv1alpha1.InstallPlan, gone []*operatorsv1alpha1.InstallPlan,
) map[string][]types.UID {
	found := map[string][]types.UID{}
	for _, p := range o.plans {
		if !o.idle(p) || slices.Contains(gone, p) {
			continue
		}
		for _, d := range decisions {
			if serves(p, d.subscription) && o.elsewhere(d, p, plans) {
				found[p.Name] = append(found[p.Name], d.subscription.UID)
			}
		}
	}
	return found
}

// retire deletes superseded plans. A plan that was approved since it was read has another resource
// version, and stays.
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
