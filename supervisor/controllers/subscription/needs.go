package subscription

import (
	"slices"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
)

// required returns a version in stays that would lack something without the versions in goes, and
// what it would lack. Operators that are uninstalled together and need each other, even indirectly,
// do not block each other.
func (o *observation) required(goes, stays []*operatorsv1alpha1.ClusterServiceVersion) (by *operatorsv1alpha1.ClusterServiceVersion, what string) {
	ring := slices.Clone(goes)
	for more := true; more; {
		more = false
		for _, csv := range without(stays, ring) {
			what := o.lacks(csv, ring, without(stays, append([]*operatorsv1alpha1.ClusterServiceVersion{csv}, ring...)))
			if what == "" {
				continue
			}
			if !o.departing(csv) || !o.neededBy(csv, goes) {
				return csv, what
			}
			ring, more = append(ring, csv), true
		}
	}
	return nil, ""
}

// neededBy reports whether some versions need another one, directly or through versions that are
// uninstalled too.
func (o *observation) neededBy(csv *operatorsv1alpha1.ClusterServiceVersion, some []*operatorsv1alpha1.ClusterServiceVersion) bool {
	reached := slices.Clone(some)
	for more := true; more; {
		more = false
		for _, next := range without(o.csvs, reached) {
			if o.departing(next) && o.anyLacks(reached, []*operatorsv1alpha1.ClusterServiceVersion{next}) {
				reached, more = append(reached, next), true
			}
		}
	}
	return slices.Contains(reached, csv)
}

// begunFor returns the incomplete plans of a Subscription that serve no other Subscriptions, except
// those that they created.
func (o *observation) begunFor(sub *operatorsv1alpha1.Subscription) []*operatorsv1alpha1.InstallPlan {
	var list []*operatorsv1alpha1.InstallPlan
	for _, p := range o.plans {
		if p.Status.Phase == operatorsv1alpha1.InstallPlanPhaseComplete || versionFor(p, sub) == "" {
			continue
		}
		shared := slices.ContainsFunc(o.subscriptions, func(other *operatorsv1alpha1.Subscription) bool {
			return generatedBy(other) != p.Name && (servesSubscription(p, other) || serves(p, other))
		})
		if !shared {
			list = append(list, p)
		}
	}
	return list
}

// unneeded returns the names of the generated Subscriptions that no remaining version needs. Their
// packages were needed by the given versions, directly or indirectly, or the given plans created
// them.
func (o *observation) unneeded(goes []*operatorsv1alpha1.ClusterServiceVersion, plans []*operatorsv1alpha1.InstallPlan) []string {
	candidates := o.candidates(goes, plans)
	for {
		gone := slices.Clone(goes)
		for _, sub := range candidates {
			gone = append(gone, o.versionsOf(sub)...)
		}
		// Versions that are uninstalled too do not remain.
		stays := slices.DeleteFunc(without(o.csvs, gone), o.departing)
		left := slices.DeleteFunc(slices.Clone(candidates), func(sub *operatorsv1alpha1.Subscription) bool { return o.anyLacks(stays, o.versionsOf(sub)) })
		if len(left) == len(candidates) {
			break
		}
		// A needed version may need others.
		candidates = left
	}
	names := make([]string, 0, len(candidates))
	for _, sub := range candidates {
		names = append(names, sub.Name)
	}
	slices.Sort(names)
	return names
}

// candidates returns the Subscriptions that may be unneeded, whatever else needs them.
func (o *observation) candidates(goes []*operatorsv1alpha1.ClusterServiceVersion, plans []*operatorsv1alpha1.InstallPlan) []*operatorsv1alpha1.Subscription {
	var found []*operatorsv1alpha1.Subscription
	for gone, more := slices.Clone(goes), true; more; {
		more = false
		for _, sub := range o.subscriptions {
			if generatedBy(sub) == "" || slices.Contains(found, sub) || o.wanted(sub) {
				continue
			}
			versions := o.versionsOf(sub)
			made := slices.ContainsFunc(plans, func(p *operatorsv1alpha1.InstallPlan) bool { return generatedBy(sub) == p.Name })
			if made || o.anyLacks(gone, versions) {
				found, gone, more = append(found, sub), append(gone, versions...), true
			}
		}
	}
	return found
}
