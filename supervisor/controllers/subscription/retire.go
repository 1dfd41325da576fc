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
		if o.idle(p) && unwanted(o, p, byUID, plans) {
			found = append(found, p)
		}
	}
	return found
}

// idle says whether nothing is done with a plan, so that nothing is lost when it goes:
// it waits for an approval or for its steps. One that brought what is there, and of
// which somebody asks again to approve it, does no harm.
func (o *observation) idle(p *operatorsv1alpha1.InstallPlan) bool {
	waits := p.Status.Phase == operatorsv1alpha1.InstallPlanPhaseRequiresApproval && !p.Spec.Approved
	return (waits || unmade(p)) && slices.ContainsFunc(p.Spec.ClusterServiceVersionNames, func(csv string) bool {
		return !o.isPresent(csv) || o.broughtByAnother(p, csv)
	})
}

// broughtByAnother says whether another plan has brought a version that is there.
func (o *observation) broughtByAnother(p *operatorsv1alpha1.InstallPlan, csv string) bool {
	for _, other := range o.plans {
		if other != p && installs(other, csv) && other.Status.Phase == operatorsv1alpha1.InstallPlanPhaseComplete {
			return true
		}
	}
	return false
}

// unwanted says whether none of the Subscriptions that a plan serves is heading
// for it.
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

// elsewhere says whether a Subscription is heading for something else than a plan.
// Without an answer, or with something under way, it may come back to it.
func (o *observation) elsewhere(d *decision, p *operatorsv1alpha1.InstallPlan, plans map[string]*operatorsv1alpha1.InstallPlan) bool {
	decided := plans[d.subscription.Name]
	answered := d.err == nil && (decided != nil || o.free(d))
	return answered && (decided == nil || decided.Name != p.Name)
}

// orphaned says whether a plan was made for Subscriptions of which none is left, and
// has lost its owner references too: no garbage collector looks for it.
func (o *observation) orphaned(p *operatorsv1alpha1.InstallPlan) bool {
	return recordsAudience(p) && len(p.OwnerReferences) == 0 && len(o.lostOwners(p)) == 0
}

// parted finds the Subscriptions that a plan serves no more, while others still want
// it: those that are heading for something else before it was carried out.
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
