package subscription

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chandlery/chandlery/supervisor/history"
	"github.com/chandlery/chandlery/supervisor/plan"
)

// derive returns the status of a Subscription from the existing objects and the decision. From the
// old status it keeps only the times of unchanged parts, and the conditions of other clients. p is
// the plan of the decision, nil for none.
func derive(o *observation, d *decision, p *operatorsv1alpha1.InstallPlan, now metav1.Time) operatorsv1alpha1.SubscriptionStatus {
	before := d.subscription.Status
	status := *before.DeepCopy()
	if p == nil {
		p = o.currentPlan(d)
	}
	status.CurrentCSV, status.InstalledCSV = versions(d, p)
	status.State = o.stateOf(status, d, p)
	reference(&status, &before, p)
	if p == nil && o.strayed(d.subscription) {
		status.InstallPlanRef, status.Install = nil, nil
	}
	status.CatalogHealth = catalogHealth(o, before.CatalogHealth, now)
	conditions := append(catalogConditions(o, d, status), ownConditions(o, d, status, p)...)
	status.Conditions = mergeConditions(before.Conditions, d.withWaiting(conditions, p, now.Time), now)
	return status
}

// currentPlan returns the relevant plan when the decision has none. The plan in progress comes
// first. Where there is no decision, for example without a catalog, an unfinished plan follows. The
// plan that brought the existing version comes last.
func (o *observation) currentPlan(d *decision) *operatorsv1alpha1.InstallPlan {
	// A plan that brings the package for other Subscriptions only belongs to them.
	if p := d.underWay; p != nil && (servesSubscription(p, d.subscription) || serves(p, d.subscription)) {
		return p
	}
	if p := o.openPlan(d); d.err != nil && p != nil {
		return p
	}
	if d.present.current != nil {
		if p := o.planFor(d.subscription, d.present.current.Name); p != nil {
			return p
		}
	}
	// Otherwise the plan in the status stays, as long as it exists.
	if p := o.referred(d.subscription.Status.InstallPlanRef); p != nil && !o.strayed(d.subscription) {
		return p
	}
	return nil
}

// strayed reports whether a Subscription refers to an existing plan that does not serve it: it
// asked for something else when the plan was created.
func (o *observation) strayed(sub *operatorsv1alpha1.Subscription) bool {
	p := o.referred(sub.Status.InstallPlanRef)
	return p != nil && recordsAudience(p) && !wiped(p) && plan.VersionOf(p, sub.Spec.Package) == "" && !serves(p, sub) && generatedBy(sub) != p.Name
}

// openPlan returns the newest unfinished plan of a Subscription. It skips plans that are older than
// the one of the existing version. It also skips plans without steps that no status refers to.
func (o *observation) openPlan(d *decision) *operatorsv1alpha1.InstallPlan {
	oldest := o.broughtBy(d.subscription, d.present)
	var found *operatorsv1alpha1.InstallPlan
	for _, p := range o.plans {
		ref := d.subscription.Status.InstallPlanRef
		forgotten := unmade(p) && (ref == nil || ref.UID != p.UID)
		if !open(p) || forgotten || p.Spec.Generation < oldest || !servesSubscription(p, d.subscription) {
			continue
		}
		if d.present.current == nil && plan.VersionOf(p, d.subscription.Spec.Package) == "" {
			continue
		}
		if found == nil || p.Spec.Generation > found.Spec.Generation {
			found = p
		}
	}
	return found
}

// open reports whether a plan is unfinished.
func open(p *operatorsv1alpha1.InstallPlan) bool {
	return p.Status.Phase != operatorsv1alpha1.InstallPlanPhaseComplete && p.Status.Phase != operatorsv1alpha1.InstallPlanPhaseFailed
}

// broughtBy returns the generation of the plan that brought the existing version; zero where there
// is none.
func (o *observation) broughtBy(sub *operatorsv1alpha1.Subscription, present installation) int {
	if present.current == nil {
		return 0
	}
	p := o.planFor(sub, present.current.Name)
	if p == nil {
		return 0
	}
	return p.Spec.Generation
}

// unmade reports whether the steps of a plan are not written yet: it is new, its content is not
// here, or its creator died.
func unmade(p *operatorsv1alpha1.InstallPlan) bool {
	return planning(p) && len(p.Status.Plan) == 0
}

// planning reports whether a plan has not left Planning: its manifests may be missing.
func planning(p *operatorsv1alpha1.InstallPlan) bool {
	return p.Status.Phase == operatorsv1alpha1.InstallPlanPhaseNone || p.Status.Phase == operatorsv1alpha1.InstallPlanPhasePlanning
}

// versions returns the version that a Subscription will have and the one that it has.
//
// The former is set once its plan has left Planning. Before that, the bundle may be impossible to
// get, and clients expect currentCSV to exist soon.
func versions(d *decision, p *operatorsv1alpha1.InstallPlan) (current, installed string) {
	if d.present.installed != nil {
		installed = d.present.installed.Name
	}
	switch {
	case d.install != nil && p != nil && !planning(p) && installs(p, d.install.Bundle):
		current = d.install.Bundle
	case (d.err != nil || d.underWay != nil) && p != nil && !planning(p) && plan.VersionOf(p, d.subscription.Spec.Package) != "":
		current = plan.VersionOf(p, d.subscription.Spec.Package)
	case d.present.current != nil:
		current = d.present.current.Name
	}
	return current, installed
}

// stateOf returns the state of a Subscription.
func (o *observation) stateOf(
	status operatorsv1alpha1.SubscriptionStatus, d *decision, p *operatorsv1alpha1.InstallPlan,
) operatorsv1alpha1.SubscriptionState {
	switch {
	case status.CurrentCSV == "":
		return operatorsv1alpha1.SubscriptionStateNone
	case d.underWay != nil && planning(d.underWay):
		return operatorsv1alpha1.SubscriptionStateUpgradePending
	case d.install == nil && status.CurrentCSV == status.InstalledCSV && (!o.incomplete(p) || !installs(p, status.CurrentCSV)):
		return operatorsv1alpha1.SubscriptionStateAtLatest
	case o.groups.failForward && p != nil && p.Status.Phase == operatorsv1alpha1.InstallPlanPhaseFailed:
		return operatorsv1alpha1.SubscriptionStateFailed
	default:
		return operatorsv1alpha1.SubscriptionStateUpgradePending
	}
}

// incomplete reports whether a plan has steps that are not applied yet. A version may succeed
// before the last step. A complete plan whose steps were reset counts as complete.
func (o *observation) incomplete(p *operatorsv1alpha1.InstallPlan) bool {
	if p == nil {
		return false
	}
	now := o.referred(&corev1.ObjectReference{Name: p.Name, UID: p.UID})
	if now == nil || now.Status.Phase == operatorsv1alpha1.InstallPlanPhaseComplete {
		return false
	}
	return slices.ContainsFunc(now.Status.Plan, func(s *operatorsv1alpha1.Step) bool {
		return s.Status != operatorsv1alpha1.StepStatusCreated && s.Status != operatorsv1alpha1.StepStatusPresent
	})
}

// lacking reports whether the newest version of a Subscription may lack parts that no plan brings.
// Its plan was deleted too early, or has lost its steps. Only a catalog that has the version can
// provide the parts.
func (o *observation) lacking(d *decision) bool {
	csv := d.present.current
	if csv == nil || !o.has(wishOf(d.subscription), csv.Name) {
		return false
	}
	p := o.planFor(d.subscription, csv.Name)
	if p != nil {
		return unmade(p)
	}
	// While its requirements are unknown, the version may continue without help.
	waits := csv.Status.Phase == operatorsv1alpha1.CSVPhasePending && csv.Status.Reason != operatorsv1alpha1.CSVReasonRequirementsUnknown
	return (waits && !o.carriedOut(csv.Name)) || o.interrupted(d.subscription)
}

// carriedOut reports whether a plan brings a version or has brought it, whichever
// Subscription it serves.
func (o *observation) carriedOut(csv string) bool {
	for _, p := range o.plans {
		done := running(p) || p.Status.Phase == operatorsv1alpha1.InstallPlanPhaseComplete
		if done && installs(p, csv) {
			return true
		}
	}
	return false
}

// interrupted reports whether the plan that a Subscription refers to was deleted after it began and
// before it was complete. The version then lacks parts. The transition log has the phases, and
// untold has those that are not recorded yet.
func (o *observation) interrupted(sub *operatorsv1alpha1.Subscription) bool {
	ref := sub.Status.InstallPlanRef
	if ref == nil || generatedBy(sub) == ref.Name || o.referred(ref) != nil {
		return false
	}
	ledger, err := history.Read(sub)
	if err != nil {
		return false
	}
	phases := slices.Clone(o.untold[ref.UID])
	for _, t := range ledger {
		if t.UID == ref.UID {
			phases = append(phases, operatorsv1alpha1.InstallPlanPhase(t.Phase))
		}
	}
	if slices.Contains(phases, operatorsv1alpha1.InstallPlanPhaseComplete) {
		return false
	}
	return slices.Contains(phases, operatorsv1alpha1.InstallPlanPhaseInstalling) || slices.Contains(phases, operatorsv1alpha1.InstallPlanPhaseFailed)
}

// untold returns, by UID, the phases of the plans that Subscriptions refer to, as far as transition
// logs may lack them.
func untold(subscriptions []*operatorsv1alpha1.Subscription, find pages) map[types.UID][]operatorsv1alpha1.InstallPlanPhase {
	phases := map[types.UID][]operatorsv1alpha1.InstallPlanPhase{}
	for _, sub := range subscriptions {
		ref := sub.Status.InstallPlanRef
		if ref == nil || phases[ref.UID] != nil {
			continue
		}
		stages, _ := find(ref.UID, 0)
		for _, s := range stages {
			phases[ref.UID] = append(phases[ref.UID], s.plan.Status.Phase)
		}
	}
	return phases
}

// reference makes a status refer to a plan. Without a plan, the reference stays if there is a
// current version, and the condition InstallPlanMissing reports a deleted plan. Otherwise the
// reference is removed.
func reference(status, before *operatorsv1alpha1.SubscriptionStatus, p *operatorsv1alpha1.InstallPlan) {
	if p == nil {
		if status.CurrentCSV == "" {
			status.InstallPlanRef, status.Install = nil, nil
		}
		return
	}
	status.InstallPlanRef = &corev1.ObjectReference{
		APIVersion: operatorsv1alpha1.InstallPlanAPIVersion, Kind: operatorsv1alpha1.InstallPlanKind,
		Namespace: p.Namespace, Name: p.Name, UID: p.UID, ResourceVersion: resourceVersion(before, p),
	}
	status.Install = operatorsv1alpha1.NewInstallPlanReference(status.InstallPlanRef)
	status.InstallPlanGeneration = p.Spec.Generation
}

// resourceVersion returns the version of a plan when it entered the stage that the status shows.
// Following every change of the plan would write the Subscription each time without new
// information.
func resourceVersion(before *operatorsv1alpha1.SubscriptionStatus, p *operatorsv1alpha1.InstallPlan) string {
	if history.Shows(before, p) {
		return before.InstallPlanRef.ResourceVersion
	}
	return p.ResourceVersion
}

// entriesOf returns the previous entries of a catalog.
func entriesOf(before []operatorsv1alpha1.SubscriptionCatalogHealth, key types.NamespacedName) []operatorsv1alpha1.SubscriptionCatalogHealth {
	return slices.DeleteFunc(slices.Clone(before), func(h operatorsv1alpha1.SubscriptionCatalogHealth) bool {
		ref := h.CatalogSourceRef
		return ref == nil || ref.Namespace != key.Namespace || ref.Name != key.Name
	})
}

// catalogHealth lists the catalogs in scope by namespace and name. It keeps an entry without
// changes, and the entry of a catalog that is being read for the first time.
func catalogHealth(o *observation, before []operatorsv1alpha1.SubscriptionCatalogHealth, now metav1.Time) []operatorsv1alpha1.SubscriptionCatalogHealth {
	keys := slices.SortedFunc(maps.Keys(o.catalogs), func(a, b types.NamespacedName) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	var list []operatorsv1alpha1.SubscriptionCatalogHealth
	for _, key := range keys {
		c := o.catalogs[key]
		if offer(c).Pending {
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

// changed reports whether a status differs, apart from the time of its update.
func changed(before, after operatorsv1alpha1.SubscriptionStatus, equal func(a, b any) bool) bool {
	after.LastUpdated = before.LastUpdated
	return !equal(before, after)
}

// describe returns a one-line summary of a decision, for logs.
func describe(d *decision) string {
	var planning *planError
	switch {
	case d.withdraw != nil:
		return "withdraw " + d.withdraw.Name
	case d.install != nil:
		return "install " + d.install.Bundle
	case errors.As(d.err, &planning):
		return "planning failed"
	case len(d.along) > 0:
		return "install what " + d.present.current.Name + " has lost"
	case d.err != nil:
		return "resolution failed"
	case d.underWay != nil && d.present.settled():
		return "waiting for InstallPlan " + d.underWay.Name
	case d.present.settled():
		return "up to date"
	default:
		return fmt.Sprintf("waiting for %s in phase %s", d.present.current.Name, d.present.current.Status.Phase)
	}
}
