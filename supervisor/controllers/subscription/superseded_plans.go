package subscription

import (
	"slices"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/types"
)

// planState is the state of a namespace after its plans were ensured.
type planState struct {
	*namespaceState

	decisions []*decision
	// ensured holds the plan of each decision to install, by the name of the Subscription.
	ensured map[string]*operatorsv1alpha1.InstallPlan
}

// superseded returns the plans that wait for approval or steps although every Subscription they
// serve has another decision now. If approved later, such a plan would install a version beside the
// newer one.
func (o *planState) superseded() []*operatorsv1alpha1.InstallPlan {
	byUID := map[types.UID]*decision{}
	for _, d := range o.decisions {
		byUID[d.subscription.UID] = d
	}
	var found []*operatorsv1alpha1.InstallPlan
	for _, p := range o.plans {
		if o.waiting(p) && o.unwanted(p, byUID) {
			found = append(found, p)
		}
	}
	return found
}

// waiting reports whether a plan waits for approval or steps, and may be deleted without loss. That
// is not so if it installed all its versions and they exist: a new approval of it does no harm.
func (o *planState) waiting(p *operatorsv1alpha1.InstallPlan) bool {
	waits := p.Status.Phase == operatorsv1alpha1.InstallPlanPhaseRequiresApproval && !p.Spec.Approved
	return (waits || lacksSteps(p)) && slices.ContainsFunc(p.Spec.ClusterServiceVersionNames, func(csv string) bool {
		byAnother := func(other *operatorsv1alpha1.InstallPlan) bool {
			return other != p && installs(other, csv) && complete(other)
		}
		return !exists(o.versions, csv) || o.plans.contains(byAnother)
	})
}

// unwanted reports whether every Subscription that a plan serves has another plan now.
func (o *planState) unwanted(p *operatorsv1alpha1.InstallPlan, byUID map[types.UID]*decision) bool {
	served := 0
	for _, ref := range p.OwnerReferences {
		d := byUID[ref.UID]
		if d == nil {
			continue
		}
		served++
		if !o.hasOtherPlan(d, p) {
			return false
		}
	}
	return served > 0 || o.orphaned(p)
}

// hasOtherPlan reports whether a Subscription has a decision that a plan does not serve. Without a
// decision, or with a version in progress, the Subscription may still use the plan.
func (o *planState) hasOtherPlan(d *decision, p *operatorsv1alpha1.InstallPlan) bool {
	ensured := o.ensured[d.subscription.Name]
	decided := d.err == nil && (ensured != nil || o.canStart(d))
	return decided && (ensured == nil || ensured.Name != p.Name)
}

// orphaned reports whether none of the Subscriptions of a plan exists, and the plan has no owner
// references either. Garbage collection does not delete such a plan.
func (o *planState) orphaned(p *operatorsv1alpha1.InstallPlan) bool {
	return recordsSubscriptions(p) && len(p.OwnerReferences) == 0 && len(missingOwners(o.namespaceState, p)) == 0
}

// formerOwners returns, by plan, the Subscriptions that it no longer serves while it serves others.
// They have another plan before this one is executed. Superseded plans are left out.
func (o *planState) formerOwners(superseded []*operatorsv1alpha1.InstallPlan) map[string][]types.UID {
	found := map[string][]types.UID{}
	for _, p := range o.plans {
		if !o.waiting(p) || slices.Contains(superseded, p) {
			continue
		}
		for _, d := range o.decisions {
			if serves(p, d.subscription) && o.hasOtherPlan(d, p) {
				found[p.Name] = append(found[p.Name], d.subscription.UID)
			}
		}
	}
	return found
}
