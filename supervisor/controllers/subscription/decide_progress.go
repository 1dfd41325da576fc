package subscription

import (
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
)

// mayBegin reports whether nothing is in progress for a Subscription, so that the next version may
// be installed. A failed newest version also counts where the OperatorGroup allows upgrades to fail
// forward, or where the Subscription is pinned to another version.
func (o *observation) mayBegin(d *decision) bool {
	if o.lacksParts(d) {
		return false
	}
	forward := o.groups.failForward || d.pinnedElsewhere()
	return (d.present.settled() || (d.present.failed() && forward)) && d.inProgress == nil
}

// lacksParts reports whether the newest version of a Subscription may lack parts that no plan
// brings. Its plan was deleted too early, or has lost its steps. Only a catalog that has the version
// can provide the parts.
func (o *observation) lacksParts(d *decision) bool {
	csv := d.present.current
	if csv == nil || !o.catalogs.has(originOf(d.subscription), csv.Name) {
		return false
	}
	if p := o.plans.installing(d.subscription, csv.Name); p != nil {
		return lacksSteps(p)
	}
	// While its requirements are unknown, the version may continue without help.
	waits := csv.Status.Phase == operatorsv1alpha1.CSVPhasePending && csv.Status.Reason != operatorsv1alpha1.CSVReasonRequirementsUnknown
	brought := func(p *operatorsv1alpha1.InstallPlan) bool {
		return (running(p) || complete(p)) && installs(p, csv.Name)
	}
	return (waits && !o.plans.contains(brought)) || o.plans.interrupted(d.subscription, o.unrecorded)
}
