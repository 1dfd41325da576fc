package subscription

import (
	"slices"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/resolution/constraint"
)

const onDeleteUninstall = "uninstall"

// uninstalls reports whether the operator of a Subscription has to be uninstalled with it.
func uninstalls(sub *operatorsv1alpha1.Subscription) bool {
	return sub.Annotations[api.AnnotationOnDelete] == onDeleteUninstall
}

// dependencies finds out which versions of a namespace need which others.
type dependencies struct{ *namespaceState }

// versionsOf returns the versions of the package of a Subscription: those that record it, and those
// without a record that the status names.
func (d dependencies) versionsOf(sub *operatorsv1alpha1.Subscription) []*operatorsv1alpha1.ClusterServiceVersion {
	return slices.DeleteFunc(slices.Clone(d.versions), func(csv *operatorsv1alpha1.ClusterServiceVersion) bool {
		pkg := d.properties.read(csv).subject.Package
		known := pkg == "" && (csv.Name == sub.Status.CurrentCSV || csv.Name == sub.Status.InstalledCSV)
		return pkg != sub.Spec.Package && !known
	})
}

// ofAny reports whether a version is of the package of one of the named Subscriptions.
func (d dependencies) ofAny(names []string, csv *operatorsv1alpha1.ClusterServiceVersion) bool {
	return slices.ContainsFunc(d.subscriptions, func(sub *operatorsv1alpha1.Subscription) bool {
		return slices.Contains(names, sub.Name) && slices.Contains(d.versionsOf(sub), csv)
	})
}

// uninstalled reports whether a version is uninstalled with a Subscription that is being deleted.
func (d dependencies) uninstalled(csv *operatorsv1alpha1.ClusterServiceVersion) bool {
	return slices.ContainsFunc(d.deleting, func(sub *operatorsv1alpha1.Subscription) bool {
		return sub.Spec != nil && uninstalls(sub) && slices.Contains(d.versionsOf(sub), csv)
	})
}

// required returns a version in remaining that would lack something without the versions in removed,
// and what it would lack. Operators that are uninstalled together and need each other, even
// indirectly, do not block each other.
func (d dependencies) required(removed, remaining []*operatorsv1alpha1.ClusterServiceVersion) (by *operatorsv1alpha1.ClusterServiceVersion, what string) {
	ring := slices.Clone(removed)
	for more := true; more; {
		more = false
		for _, csv := range without(remaining, ring) {
			what := d.lacks(csv, ring, without(remaining, append([]*operatorsv1alpha1.ClusterServiceVersion{csv}, ring...)))
			if what == "" {
				continue
			}
			if !d.uninstalled(csv) || !d.neededBy(csv, removed) {
				return csv, what
			}
			ring, more = append(ring, csv), true
		}
	}
	return nil, ""
}

// neededBy reports whether some versions need another one, directly or through versions that are
// uninstalled too.
func (d dependencies) neededBy(csv *operatorsv1alpha1.ClusterServiceVersion, some []*operatorsv1alpha1.ClusterServiceVersion) bool {
	reached := slices.Clone(some)
	for more := true; more; {
		more = false
		for _, next := range without(d.versions, reached) {
			if d.uninstalled(next) && d.anyLacks(reached, []*operatorsv1alpha1.ClusterServiceVersion{next}) {
				reached, more = append(reached, next), true
			}
		}
	}
	return slices.Contains(reached, csv)
}

// lacks returns what a version needs that only the versions in removed provide; empty for nothing.
func (d dependencies) lacks(csv *operatorsv1alpha1.ClusterServiceVersion, removed, remaining []*operatorsv1alpha1.ClusterServiceVersion) string {
	f := d.properties.read(csv)
	for i := range f.requires {
		if c := &f.requires[i]; !c.MetBy(&f.subject) && d.unmet(c, removed, remaining) {
			return "an operator " + c.String()
		}
	}
	for _, needed := range csv.Spec.CustomResourceDefinitions.Required {
		owns := func(other *operatorsv1alpha1.ClusterServiceVersion) bool { return other.OwnsCRD(needed.Name) }
		if !owns(csv) && slices.ContainsFunc(removed, owns) && !slices.ContainsFunc(remaining, owns) {
			return "CustomResourceDefinition " + needed.Name
		}
	}
	return ""
}

// unmet reports whether a constraint, or one of its parts, is met by versions in removed and by none
// in remaining.
func (d dependencies) unmet(c *constraint.Constraint, removed, remaining []*operatorsv1alpha1.ClusterServiceVersion) bool {
	meets := func(csv *operatorsv1alpha1.ClusterServiceVersion) bool {
		subject := d.properties.read(csv).subject
		return c.MetBy(&subject)
	}
	if slices.ContainsFunc(remaining, meets) {
		return false
	}
	if slices.ContainsFunc(removed, meets) {
		return true
	}
	parts := c.Split()
	return slices.ContainsFunc(parts, func(part constraint.Constraint) bool { return d.unmet(&part, removed, remaining) })
}

// anyLacks reports whether any of some versions needs what others provide, whatever else provides
// it.
func (d dependencies) anyLacks(some, others []*operatorsv1alpha1.ClusterServiceVersion) bool {
	return slices.ContainsFunc(some, func(csv *operatorsv1alpha1.ClusterServiceVersion) bool { return d.lacks(csv, others, nil) != "" })
}

// exclusivePlans returns the incomplete plans of a Subscription that serve no other Subscriptions,
// except those that they created.
func (d dependencies) exclusivePlans(sub *operatorsv1alpha1.Subscription) []*operatorsv1alpha1.InstallPlan {
	var list []*operatorsv1alpha1.InstallPlan
	for _, p := range d.plans {
		if complete(p) || versionFor(p, sub) == "" {
			continue
		}
		shared := slices.ContainsFunc(d.subscriptions, func(other *operatorsv1alpha1.Subscription) bool {
			return generatedBy(other) != p.Name && (belongsTo(p, other) || serves(p, other))
		})
		if !shared {
			list = append(list, p)
		}
	}
	return list
}

// unneeded returns the names of the generated Subscriptions that no remaining version needs. Their
// packages were needed by the removed versions, directly or indirectly, or the given plans created
// them.
func (d dependencies) unneeded(removed []*operatorsv1alpha1.ClusterServiceVersion, plans []*operatorsv1alpha1.InstallPlan) []string {
	candidates := d.candidates(removed, plans)
	for {
		gone := slices.Clone(removed)
		for _, sub := range candidates {
			gone = append(gone, d.versionsOf(sub)...)
		}
		// Versions that are uninstalled too do not remain.
		remaining := slices.DeleteFunc(without(d.versions, gone), d.uninstalled)
		left := slices.DeleteFunc(slices.Clone(candidates), func(sub *operatorsv1alpha1.Subscription) bool { return d.anyLacks(remaining, d.versionsOf(sub)) })
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
func (d dependencies) candidates(removed []*operatorsv1alpha1.ClusterServiceVersion, plans []*operatorsv1alpha1.InstallPlan) []*operatorsv1alpha1.Subscription {
	var found []*operatorsv1alpha1.Subscription
	for gone, more := slices.Clone(removed), true; more; {
		more = false
		for _, sub := range d.subscriptions {
			if generatedBy(sub) == "" || slices.Contains(found, sub) || remainingOwner(d.subscriptions, sub) != nil {
				continue
			}
			versions := d.versionsOf(sub)
			created := slices.ContainsFunc(plans, func(p *operatorsv1alpha1.InstallPlan) bool { return generatedBy(sub) == p.Name })
			if created || d.anyLacks(gone, versions) {
				found, gone, more = append(found, sub), append(gone, versions...), true
			}
		}
	}
	return found
}

// remainingOwner returns another Subscription of the same package, which owns the operator from now
// on; nil for none.
func remainingOwner(subs []*operatorsv1alpha1.Subscription, sub *operatorsv1alpha1.Subscription) *operatorsv1alpha1.Subscription {
	for _, other := range subs {
		if other.UID != sub.UID && other.Spec.Package == sub.Spec.Package {
			return other
		}
	}
	return nil
}

func without(list, some []*operatorsv1alpha1.ClusterServiceVersion) []*operatorsv1alpha1.ClusterServiceVersion {
	return slices.DeleteFunc(slices.Clone(list), func(csv *operatorsv1alpha1.ClusterServiceVersion) bool { return slices.Contains(some, csv) })
}
