package subscription

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/plan"
	"github.com/chandlery/chandlery/supervisor/resolver/constraint"
)

const (
	onDeleteUninstall = "uninstall"
)

// planGrace is how long a plan in progress may continue after the deletion of its Subscription. Its
// remaining steps would otherwise recreate objects.
const planGrace = 30 * time.Second

// uninstalls reports whether the operator of a Subscription has to be uninstalled with it.
func uninstalls(sub *operatorsv1alpha1.Subscription) bool {
	return sub.Annotations[api.AnnotationOnDelete] == onDeleteUninstall
}

// departs reports whether a Subscription is being deleted and waits for the removal of its
// operator.
func departs(sub *operatorsv1alpha1.Subscription) bool {
	return !sub.DeletionTimestamp.IsZero() && slices.Contains(sub.Finalizers, api.FinalizerUninstall)
}

// departure is the next step of an uninstallation. The fields are in the order of the steps.
// Without work and without a wait, the Subscription may be deleted.
type departure struct {
	// record is the next value of api.AnnotationUninstalls; nil if it has that value.
	record *string
	// plans, versions and dependents are the objects to delete.
	plans      []*operatorsv1alpha1.InstallPlan
	versions   []*operatorsv1alpha1.ClusterServiceVersion
	dependents []*operatorsv1alpha1.Subscription
	// reason and waits state what the uninstallation waits for; empty for nothing.
	reason, waits string
	// again is when to check again without an event.
	again time.Time
	// why states why nothing is uninstalled, where that is not obvious.
	why string
}

func (d *departure) wait(reason, format string, args ...any) departure {
	d.reason, d.waits = reason, fmt.Sprintf(format, args...)
	return *d
}

// departure returns the next step of an uninstallation. Each pass begins with the existing objects,
// so that it may be interrupted anywhere.
func (o *observation) departure(sub *operatorsv1alpha1.Subscription, now time.Time) departure {
	d := departure{}
	if sub.Spec == nil || !uninstalls(sub) {
		d.why = "annotation " + api.AnnotationOnDelete + " does not ask for it any more"
		return d
	}
	if heir := o.heir(sub); heir != "" {
		d.why = "subscription " + heir + " keeps package " + sub.Spec.Package
		return d
	}
	mine := o.versionsOf(sub)
	rest := without(o.csvs, mine)
	if by, what := o.required(mine, rest); by != nil && !begun(sub, mine) {
		return d.wait(api.ReasonStillRequired, "clusterserviceversion %s requires %s, which only %s gives it; delete that operator too, "+
			"or remove annotation %s, and this one stays installed", by.Name, what, listed(mine), api.AnnotationOnDelete)
	}
	note, recorded := sub.Annotations[api.AnnotationUninstalls]
	along := strings.Split(note, ",")
	if !recorded {
		along = o.unneeded(mine, o.begunFor(sub))
	}
	// A plan in progress may bring versions that need more.
	o.endPlans(&d, sub, along, now)
	if d.reason != "" {
		return d
	}
	if !recorded {
		return departure{record: new(strings.Join(along, ","))}
	}
	if len(d.plans) > 0 {
		return d
	}
	if len(mine) > 0 {
		d.versions = slices.DeleteFunc(slices.Clone(mine), func(csv *operatorsv1alpha1.ClusterServiceVersion) bool { return !csv.DeletionTimestamp.IsZero() })
		return d.wait(api.ReasonWaitingOnCleanup, "waiting for clusterserviceversion %s", progressOf(mine))
	}
	return o.endDependents(d, sub)
}

// begun reports whether the newest versions of a departing Subscription are being deleted. It is
// then too late to wait for the versions that need them. Older versions do not count: each update
// deletes them.
func begun(sub *operatorsv1alpha1.Subscription, mine []*operatorsv1alpha1.ClusterServiceVersion) bool {
	_, recorded := sub.Annotations[api.AnnotationUninstalls]
	return recorded && slices.ContainsFunc(tips(mine), func(csv *operatorsv1alpha1.ClusterServiceVersion) bool { return !csv.DeletionTimestamp.IsZero() })
}

// heir returns the name of another Subscription of the same package, which owns the operator from
// now on; empty for none.
func (o *observation) heir(sub *operatorsv1alpha1.Subscription) string {
	for _, other := range o.subscriptions {
		if other.UID != sub.UID && other.Spec.Package == sub.Spec.Package {
			return other.Name
		}
	}
	return ""
}

// versionsOf returns the versions of the package of a Subscription: those that record it, and those
// without a record that the status names.
func (o *observation) versionsOf(sub *operatorsv1alpha1.Subscription) []*operatorsv1alpha1.ClusterServiceVersion {
	return slices.DeleteFunc(slices.Clone(o.csvs), func(csv *operatorsv1alpha1.ClusterServiceVersion) bool {
		pkg := o.library.read(csv).subject.Package
		known := pkg == "" && (csv.Name == sub.Status.CurrentCSV || csv.Name == sub.Status.InstalledCSV)
		return pkg != sub.Spec.Package && !known
	})
}

// departing reports whether a version is uninstalled with a departing Subscription.
func (o *observation) departing(csv *operatorsv1alpha1.ClusterServiceVersion) bool {
	return slices.ContainsFunc(o.departures, func(sub *operatorsv1alpha1.Subscription) bool {
		return sub.Spec != nil && uninstalls(sub) && slices.Contains(o.versionsOf(sub), csv)
	})
}

// lacks returns what a version needs that only the versions in goes provide; empty for nothing.
func (o *observation) lacks(csv *operatorsv1alpha1.ClusterServiceVersion, goes, stays []*operatorsv1alpha1.ClusterServiceVersion) string {
	f := o.library.read(csv)
	for i := range f.requires {
		if c := &f.requires[i]; !c.MetBy(&f.subject) && o.lost(c, goes, stays) {
			return "an operator " + c.String()
		}
	}
	for _, needed := range csv.Spec.CustomResourceDefinitions.Required {
		owns := func(other *operatorsv1alpha1.ClusterServiceVersion) bool { return other.OwnsCRD(needed.Name) }
		if !owns(csv) && slices.ContainsFunc(goes, owns) && !slices.ContainsFunc(stays, owns) {
			return "CustomResourceDefinition " + needed.Name
		}
	}
	return ""
}

// lost reports whether a constraint, or one of its parts, is met by versions in goes and by none in
// stays.
func (o *observation) lost(c *constraint.Constraint, goes, stays []*operatorsv1alpha1.ClusterServiceVersion) bool {
	meets := func(csv *operatorsv1alpha1.ClusterServiceVersion) bool {
		subject := o.library.read(csv).subject
		return c.MetBy(&subject)
	}
	if slices.ContainsFunc(stays, meets) {
		return false
	}
	if slices.ContainsFunc(goes, meets) {
		return true
	}
	parts := c.Split()
	return slices.ContainsFunc(parts, func(part constraint.Constraint) bool { return o.lost(&part, goes, stays) })
}

// anyLacks reports whether any of some versions needs what others provide, whatever else provides
// it.
func (o *observation) anyLacks(some, others []*operatorsv1alpha1.ClusterServiceVersion) bool {
	return slices.ContainsFunc(some, func(csv *operatorsv1alpha1.ClusterServiceVersion) bool { return o.lacks(csv, others, nil) != "" })
}

// wanted reports whether another Subscription has the same package.
func (o *observation) wanted(sub *operatorsv1alpha1.Subscription) bool {
	return slices.ContainsFunc(o.subscriptions, func(other *operatorsv1alpha1.Subscription) bool {
		return other != sub && other.Spec.Package == sub.Spec.Package
	})
}

// endPlans finds the plans that would bring the package back. Subscriptions that are uninstalled
// along do not count as users of a plan.
func (o *observation) endPlans(d *departure, sub *operatorsv1alpha1.Subscription, along []string, now time.Time) {
	for _, name := range slices.Sorted(maps.Keys(o.plans)) {
		p := o.plans[name]
		if p.Status.Phase == operatorsv1alpha1.InstallPlanPhaseComplete || versionFor(p, sub) == "" || !p.DeletionTimestamp.IsZero() {
			continue
		}
		shared := slices.ContainsFunc(o.subscriptions, func(other *operatorsv1alpha1.Subscription) bool {
			return !slices.Contains(along, other.Name) && (servesSubscription(p, other) || serves(p, other))
		})
		limit := sub.DeletionTimestamp.Add(planGrace)
		switch {
		case running(p) && (shared || now.Before(limit)):
			d.again = limit
			d.wait(api.ReasonWaitingOnInstallPlan, "InstallPlan %s, which installs %s, is being carried out; waiting for its end",
				p.Name, plan.VersionOf(p, sub.Spec.Package))
		case !shared:
			d.plans = append(d.plans, p)
		}
	}
	if !now.Before(d.again) {
		d.again = time.Time{}
	}
}

// endDependents finds which of the recorded Subscriptions to delete now.
func (o *observation) endDependents(d departure, sub *operatorsv1alpha1.Subscription) departure {
	names := strings.Split(sub.Annotations[api.AnnotationUninstalls], ",")
	var left []string
	for _, other := range o.subscriptions {
		if !slices.Contains(names, other.Name) || generatedBy(other) == "" {
			continue
		}
		versions := o.versionsOf(other)
		onRecord := func(csv *operatorsv1alpha1.ClusterServiceVersion) bool { return o.belongsTo(csv, names) }
		if stays := slices.DeleteFunc(without(o.csvs, versions), onRecord); !o.anyLacks(stays, versions) && !o.wanted(other) {
			d.dependents, left = append(d.dependents, other), append(left, other.Name)
		}
	}
	for _, other := range o.departures {
		if other.UID != sub.UID && slices.Contains(names, other.Name) && generatedBy(other) != "" {
			left = append(left, other.Name)
		}
	}
	if len(left) == 0 {
		return d
	}
	slices.Sort(left)
	return d.wait(api.ReasonWaitingOnDependencies, "waiting for what it needed and nobody else does: subscription %s", strings.Join(left, ", "))
}

// belongsTo reports whether a version is of the package of one of the named Subscriptions.
func (o *observation) belongsTo(csv *operatorsv1alpha1.ClusterServiceVersion, names []string) bool {
	return slices.ContainsFunc(o.subscriptions, func(sub *operatorsv1alpha1.Subscription) bool {
		return slices.Contains(names, sub.Name) && slices.Contains(o.versionsOf(sub), csv)
	})
}

func without(list, some []*operatorsv1alpha1.ClusterServiceVersion) []*operatorsv1alpha1.ClusterServiceVersion {
	return slices.DeleteFunc(slices.Clone(list), func(csv *operatorsv1alpha1.ClusterServiceVersion) bool { return slices.Contains(some, csv) })
}

func listed(csvs []*operatorsv1alpha1.ClusterServiceVersion) string {
	names := make([]string, 0, len(csvs))
	for _, csv := range csvs {
		names = append(names, csv.Name)
	}
	return strings.Join(names, ", ")
}

// progressOf returns the progress of versions that are being deleted, from their status messages.
func progressOf(csvs []*operatorsv1alpha1.ClusterServiceVersion) string {
	texts := make([]string, 0, len(csvs))
	for _, csv := range csvs {
		text := csv.Name
		if string(csv.Status.Reason) == api.ReasonWaitingOnCleanup {
			text += " (" + csv.Status.Message + ")"
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, ", ")
}
