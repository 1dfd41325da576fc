package subscription

import (
	"cmp"
	"errors"
	"maps"
	"slices"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/plansteps"
	"github.com/chandlery/chandlery/supervisor/resolution"
	"github.com/chandlery/chandlery/supervisor/transitionlog"
)

// statusOf returns the status of a Subscription from the existing objects and the decision. From the
// old status it keeps only the times of unchanged parts, and the conditions of other clients. p is
// the plan of the decision, nil for none.
func statusOf(o *namespaceState, d *decision, p *operatorsv1alpha1.InstallPlan, now metav1.Time) operatorsv1alpha1.SubscriptionStatus {
	before := d.subscription.Status
	status := *before.DeepCopy()
	if p == nil {
		p = currentPlan(o.plans, d)
	}
	status.CurrentCSV, status.InstalledCSV = versionsShown(d, p)
	status.State = stateOf(o, status, d, p)
	switch {
	case p != nil:
		status.InstallPlanRef = referenceTo(p, &before)
		status.Install = operatorsv1alpha1.NewInstallPlanReference(status.InstallPlanRef)
		status.InstallPlanGeneration = p.Spec.Generation
	case status.CurrentCSV == "" || o.plans.misreferenced(d.subscription) || unusable(d.err):
		// Otherwise the condition InstallPlanMissing reports a deleted plan.
		status.InstallPlanRef, status.Install = nil, nil
	}
	status.CatalogHealth = catalogHealth(o.catalogs, before.CatalogHealth, now)
	conditions := append(catalogConditions(o, d, status), ownConditions(o, d, status, p)...)
	status.Conditions = mergeConditions(before.Conditions, withWaiting(conditions, d, p, now.Time), now)
	return status
}

// currentPlan returns the relevant plan when the decision has none. The plan in progress comes
// first. Where there is no decision, for example without a catalog, an unfinished plan follows. The
// plan that installed the existing version comes last.
func currentPlan(plans planSet, d *decision) *operatorsv1alpha1.InstallPlan {
	// A plan that installs the package for other Subscriptions only belongs to them.
	if p := d.inProgress; p != nil && (belongsTo(p, d.subscription) || serves(p, d.subscription)) {
		return p
	}
	if p := plans.unfinished(d.subscription, d.present); d.err != nil && p != nil {
		return p
	}
	if d.present.current != nil {
		if p := plans.installing(d.subscription, d.present.current.Name); p != nil {
			return p
		}
	}
	// Otherwise the plan in the status stays, as long as it exists.
	if p := plans.referenced(d.subscription.Status.InstallPlanRef); p != nil && !plans.misreferenced(d.subscription) {
		return p
	}
	return nil
}

// versionsShown returns the version that a Subscription will have and the one that it has.
//
// The former is set once its plan has left Planning. Before that, the bundle may be impossible to
// get, and clients expect currentCSV to exist soon.
func versionsShown(d *decision, p *operatorsv1alpha1.InstallPlan) (current, installed string) {
	if d.present.installed != nil {
		installed = d.present.installed.Name
	}
	switch {
	case d.install != nil && p != nil && !planning(p) && installs(p, d.install.Bundle):
		current = d.install.Bundle
	case (d.err != nil || d.inProgress != nil) && p != nil && !planning(p) && plansteps.VersionOf(p, d.subscription.Spec.Package) != "":
		current = plansteps.VersionOf(p, d.subscription.Spec.Package)
	case d.present.current != nil:
		current = d.present.current.Name
	}
	return current, installed
}

// stateOf returns the state of a Subscription. A Subscription that has no working version fails with its bundle or
// its version; otherwise it stays in the state of the installed version.
func stateOf(
	o *namespaceState, status operatorsv1alpha1.SubscriptionStatus, d *decision, p *operatorsv1alpha1.InstallPlan,
) operatorsv1alpha1.SubscriptionState {
	switch {
	case status.InstalledCSV == "" && (unpackFailed(d) || versionFailed(d)):
		return operatorsv1alpha1.SubscriptionStateFailed
	case status.CurrentCSV == "":
		return operatorsv1alpha1.SubscriptionStateNone
	case atLatest(o, status, d, p):
		return operatorsv1alpha1.SubscriptionStateAtLatest
	case d.inProgress != nil && planning(d.inProgress):
		return operatorsv1alpha1.SubscriptionStateUpgradePending
	case o.groups.failForward && p != nil && p.Status.Phase == operatorsv1alpha1.InstallPlanPhaseFailed:
		return operatorsv1alpha1.SubscriptionStateFailed
	default:
		return operatorsv1alpha1.SubscriptionStateUpgradePending
	}
}

// atLatest reports whether the installed version is the newest that can be installed now. A bundle that cannot be
// used does not count.
func atLatest(o *namespaceState, status operatorsv1alpha1.SubscriptionStatus, d *decision, p *operatorsv1alpha1.InstallPlan) bool {
	switch {
	case status.CurrentCSV != status.InstalledCSV:
		return false
	case unpackFailed(d):
		return true
	case d.install != nil || d.inProgress != nil && planning(d.inProgress):
		return false
	default:
		return !o.plans.incomplete(p) || !installs(p, status.CurrentCSV)
	}
}

// versionFailed reports whether the newest version has failed.
func versionFailed(d *decision) bool {
	return d.present.current != nil && d.present.current.Status.Phase == operatorsv1alpha1.CSVPhaseFailed
}

// unpackFailed reports whether the bundle of the chosen version cannot be used. A catalog that does not answer is
// another cause.
func unpackFailed(d *decision) bool {
	if d.err == nil || errors.Is(d.err, resolution.ErrPending) {
		return false
	}
	if _, invalid := errors.AsType[*invalidBundleError](d.err); invalid {
		return true
	}
	c := failure(d.err)
	return c.Type == operatorsv1alpha1.SubscriptionBundleUnpackFailed && c.Reason != api.ReasonEnsureInstallPlanFailed
}

// referenceTo returns the reference of a status to a plan. Its version is that of the plan when it
// entered the stage that the status shows. Following every change of the plan would write the
// Subscription each time without new information.
func referenceTo(p *operatorsv1alpha1.InstallPlan, before *operatorsv1alpha1.SubscriptionStatus) *corev1.ObjectReference {
	version := p.ResourceVersion
	if transitionlog.Shows(before, p) {
		version = before.InstallPlanRef.ResourceVersion
	}
	return &corev1.ObjectReference{
		APIVersion: operatorsv1alpha1.InstallPlanAPIVersion, Kind: operatorsv1alpha1.InstallPlanKind,
		Namespace: p.Namespace, Name: p.Name, UID: p.UID, ResourceVersion: version,
	}
}

// entriesOf returns the previous entries of a catalog.
func entriesOf(before []operatorsv1alpha1.SubscriptionCatalogHealth, key types.NamespacedName) []operatorsv1alpha1.SubscriptionCatalogHealth {
	return slices.DeleteFunc(slices.Clone(before), func(h operatorsv1alpha1.SubscriptionCatalogHealth) bool {
		ref := h.CatalogSourceRef
		return ref == nil || ref.Namespace != key.Namespace || ref.Name != key.Name
	})
}

// catalogHealth lists the catalogs in scope by namespace and name. It keeps an entry without
// changes, and the entry of a catalog that is being read for the first time or whose snapshot is being confirmed.
func catalogHealth(set catalogSet, before []operatorsv1alpha1.SubscriptionCatalogHealth, now metav1.Time) []operatorsv1alpha1.SubscriptionCatalogHealth {
	keys := slices.SortedFunc(maps.Keys(set), func(a, b types.NamespacedName) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	var list []operatorsv1alpha1.SubscriptionCatalogHealth
	for _, key := range keys {
		c := set[key]
		if resolverCatalog(c).Pending || c.State.Confirming() {
			list = append(list, entriesOf(before, key)...)
			continue
		}
		entry := operatorsv1alpha1.SubscriptionCatalogHealth{
			CatalogSourceRef: &corev1.ObjectReference{
				APIVersion: operatorsv1alpha1.CatalogSourceCRDAPIVersion, Kind: operatorsv1alpha1.CatalogSourceKind,
				Namespace: key.Namespace, Name: key.Name, UID: c.Source.UID, ResourceVersion: c.Source.ResourceVersion,
			},
			LastUpdated: &now,
			Healthy:     c.State.Ready(),
		}
		i := slices.IndexFunc(before, func(h operatorsv1alpha1.SubscriptionCatalogHealth) bool {
			return h.CatalogSourceRef != nil && h.Equals(entry)
		})
		if i >= 0 {
			entry = before[i]
		}
		list = append(list, entry)
	}
	return list
}
