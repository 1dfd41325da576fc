package subscription

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chandlery/chandlery/bundles"
	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/extras"
	"github.com/chandlery/chandlery/supervisor/history"
	"github.com/chandlery/chandlery/supervisor/plan"
	"github.com/chandlery/chandlery/supervisor/resolver"
)

// owned are the conditions that this controller sets; what it does not set of
// them is removed.
var owned = slices.Concat(fromCatalogs, []operatorsv1alpha1.SubscriptionConditionType{
	operatorsv1alpha1.SubscriptionInstallPlanMissing,
	operatorsv1alpha1.SubscriptionInstallPlanPending,
	operatorsv1alpha1.SubscriptionInstallPlanFailed,
	api.ConditionVersionUnhealthy,
	api.ConditionConfigInvalid,
	api.ConditionUninstalling,
})

// fromCatalogs are those of them that depend on what catalogs say.
var fromCatalogs = slices.Concat(fromTargeted, fromAnswer)

// fromTargeted are those that depend on the catalog that a Subscription names alone.
var fromTargeted = []operatorsv1alpha1.SubscriptionConditionType{
	operatorsv1alpha1.SubscriptionCatalogSourcesUnhealthy,
	operatorsv1alpha1.SubscriptionDeprecated,
	operatorsv1alpha1.SubscriptionPackageDeprecated,
	operatorsv1alpha1.SubscriptionChannelDeprecated,
	operatorsv1alpha1.SubscriptionBundleDeprecated,
}

// fromAnswer are those that depend on the answer.
var fromAnswer = []operatorsv1alpha1.SubscriptionConditionType{
	operatorsv1alpha1.SubscriptionResolutionFailed,
	operatorsv1alpha1.SubscriptionBundleUnpacking,
	operatorsv1alpha1.SubscriptionBundleUnpackFailed,
	api.ConditionBlocked,
	api.ConditionNewerVersionHeld,
}

// maxMessage bounds the message of a condition, in bytes: a Subscription is read
// by people, and kept whole in the memory of many a process.
const maxMessage = 4 << 10

// catalogConditions gives those of the true conditions that depend on what
// catalogs say, without times. What is about to be known, because a catalog is being
// read for the first time, stays as it was.
func catalogConditions(o *observation, d *decision, status operatorsv1alpha1.SubscriptionStatus) []operatorsv1alpha1.SubscriptionCondition {
	var list []operatorsv1alpha1.SubscriptionCondition
	before := d.subscription.Status.Conditions
	if o.reading(targeted(d.subscription)) {
		list = retained(before, fromTargeted)
	} else {
		list = append(list, catalogCondition(o, d.subscription))
		list = append(list, deprecations(o, d.subscription, status.InstalledCSV)...)
	}
	if errors.Is(d.err, resolver.ErrPending) {
		return append(list, retained(before, fromAnswer)...)
	}
	if d.err != nil {
		list = append(list, failure(d.err))
		if _, pulling := errors.AsType[lookups](d.err); !pulling || list[len(list)-1].Type == operatorsv1alpha1.SubscriptionBundleUnpackFailed {
			list = append(list, blocked(d.err))
		}
	}
	if d.held != nil {
		list = append(list, held(d.held))
	}
	return list
}

// held is the condition for what keeps a newer version from being installed.
func held(why error) operatorsv1alpha1.SubscriptionCondition {
	reason := api.ReasonConstraintsNotSatisfiable
	if _, pinned := errors.AsType[*resolver.PinnedError](why); pinned {
		reason = api.ReasonPinned
	}
	return isTrue(api.ConditionNewerVersionHeld, reason, why.Error())
}

// targeted names the catalog that a Subscription names.
func targeted(sub *operatorsv1alpha1.Subscription) types.NamespacedName {
	return types.NamespacedName{Namespace: sub.Spec.CatalogSourceNamespace, Name: sub.Spec.CatalogSource}
}

// reading says whether a catalog is being read for the first time.
func (o *observation) reading(key types.NamespacedName) bool {
	c, found := o.catalogs[key]
	return found && offer(c).Pending
}

// retained gives those conditions that are of certain types.
func retained(before []operatorsv1alpha1.SubscriptionCondition, kinds []operatorsv1alpha1.SubscriptionConditionType) []operatorsv1alpha1.SubscriptionCondition {
	var list []operatorsv1alpha1.SubscriptionCondition
	for _, c := range before {
		if slices.Contains(kinds, c.Type) {
			list = append(list, c)
		}
	}
	return list
}

// ownConditions gives those of the true conditions that depend on the plan and on
// what is installed, without times.
func ownConditions(
	o *observation, d *decision, status operatorsv1alpha1.SubscriptionStatus, p *operatorsv1alpha1.InstallPlan,
) []operatorsv1alpha1.SubscriptionCondition {
	var list []operatorsv1alpha1.SubscriptionCondition
	if unwell(d, p) {
		list = append(list, o.versionCondition(d, p))
	}
	if _, err := extras.Of(d.subscription); err != nil {
		list = append(list, isTrue(api.ConditionConfigInvalid, api.ReasonInvalidAnnotation, err.Error()))
	}
	switch {
	case p != nil:
		list = append(list, planConditions(p)...)
	case status.InstallPlanRef != nil && o.referred(status.InstallPlanRef) == nil && !outlives(d.subscription):
		list = append(list, planGone(status.InstallPlanRef.Name))
	}
	return list
}

// outlives says whether a Subscription refers to a plan that made it, that was done, and
// that belongs to others: when these are deleted it goes with them, and nobody misses it.
func outlives(sub *operatorsv1alpha1.Subscription) bool {
	ref := sub.Status.InstallPlanRef
	if ref == nil || generatedBy(sub) != ref.Name {
		return false
	}
	const complete = string(operatorsv1alpha1.InstallPlanPhaseComplete)
	if shown, _ := history.Shown(&sub.Status); shown.Phase == complete {
		return true
	}
	ledger, err := history.Read(sub)
	return err == nil && slices.ContainsFunc(ledger, func(t history.Transition) bool { return t.UID == ref.UID && t.Phase == complete })
}

// planGone is the condition for a plan that is gone.
func planGone(name string) operatorsv1alpha1.SubscriptionCondition {
	gone := history.Missing()
	return isTrue(gone.Condition(), gone.Reason, "InstallPlan "+name+" was deleted")
}

// referred gives the plan that a reference is to; nil when it is gone, were there
// another one of its name.
func (o *observation) referred(ref *corev1.ObjectReference) *operatorsv1alpha1.InstallPlan {
	if ref == nil {
		return nil
	}
	if p := o.plans[ref.Name]; p != nil && p.UID == ref.UID {
		return p
	}
	return nil
}

// catalogCondition says how the catalogs in scope are, and above all the one
// that the Subscription names.
func catalogCondition(o *observation, sub *operatorsv1alpha1.Subscription) operatorsv1alpha1.SubscriptionCondition {
	const unhealthy = operatorsv1alpha1.SubscriptionCatalogSourcesUnhealthy
	key := targeted(sub)
	catalog, found := o.catalogs[key]
	switch {
	case len(o.catalogs) == 0:
		return isTrue(unhealthy, operatorsv1alpha1.NoCatalogSourcesFound, "dependency resolution requires at least one catalogsource")
	case !found && o.groups.excludesGlobal && key.Namespace == o.global:
		return isTrue(unhealthy, operatorsv1alpha1.UnhealthyCatalogSourceFound, fmt.Sprintf(
			"targeted catalogsource %s missing; OperatorGroup %s excludes the catalogs of namespace %s by its annotation %s",
			key, strings.Join(o.groups.names, ", "), o.global, api.AnnotationExcludeGlobal))
	case !found:
		return isTrue(unhealthy, operatorsv1alpha1.UnhealthyCatalogSourceFound, "targeted catalogsource "+key.String()+" missing")
	case !catalog.State.Ready() && catalog.State.Snapshot != nil && !catalog.State.ReadAt.IsZero():
		return isTrue(unhealthy, operatorsv1alpha1.UnhealthyCatalogSourceFound, fmt.Sprintf(
			"targeted catalogsource %s unhealthy; resolving against its content as of %s", key, catalog.State.ReadAt.UTC().Format(time.RFC3339)))
	case !catalog.State.Ready():
		return isTrue(unhealthy, operatorsv1alpha1.UnhealthyCatalogSourceFound, "targeted catalogsource "+key.String()+" unhealthy")
	default:
		return operatorsv1alpha1.SubscriptionCondition{
			Type: unhealthy, Status: corev1.ConditionFalse,
			Reason: operatorsv1alpha1.AllCatalogSourcesHealthy, Message: "all available catalogsources are healthy",
		}
	}
}

// unwell says whether the newest version has failed, or lacks something though
// its plan is done. One that is just being installed is not unwell.
func unwell(d *decision, p *operatorsv1alpha1.InstallPlan) bool {
	if d.present.current == nil {
		return false
	}
	switch status := d.present.current.Status; status.Phase {
	case operatorsv1alpha1.CSVPhaseFailed, operatorsv1alpha1.CSVPhaseUnknown:
		return true
	case operatorsv1alpha1.CSVPhasePending:
		done := p == nil || p.Status.Phase == operatorsv1alpha1.InstallPlanPhaseComplete
		return done && status.Reason == operatorsv1alpha1.CSVReasonRequirementsNotMet
	default:
		return false
	}
}

// versionCondition says what is wrong with the newest version, what waits for
// it, and what can be done.
func (o *observation) versionCondition(d *decision, p *operatorsv1alpha1.InstallPlan) operatorsv1alpha1.SubscriptionCondition {
	csv := d.present.current
	message := fmt.Sprintf("clusterserviceversion %s is in phase %s: %s", csv.Name, csv.Status.Phase, csv.Status.Message)
	if d.install == nil && d.next != nil && d.next.Bundle != csv.Name {
		message += fmt.Sprintf("; %s is available and will be installed once %s is well", d.next.Bundle, csv.Name)
		message += o.groups.wayForward(csv)
	}
	if d.withdraw != nil {
		message += "; it is being withdrawn, since the Subscription is pinned to " + pinOf(d.subscription)
	} else if p != nil && csv.Status.Phase == operatorsv1alpha1.CSVPhasePending {
		message += fmt.Sprintf("; status.requirementStatus names what is missing; delete InstallPlan %s to have its parts applied again", p.Name)
	}
	return isTrue(api.ConditionVersionUnhealthy, string(csv.Status.Reason), message)
}

// failure returns the condition for an error. ConditionBlocked states the exact reason and the remedy.
func failure(err error) operatorsv1alpha1.SubscriptionCondition {
	var (
		unsatisfiable *resolver.UnsatisfiableError
		groups        *groupsError
		planning      *planError
		images        lookups
	)
	switch {
	case errors.As(err, &unsatisfiable):
		return isTrue(operatorsv1alpha1.SubscriptionResolutionFailed, api.ReasonConstraintsNotSatisfiable, unsatisfiable.Facts())
	case errors.As(err, &images):
		return images.condition()
	case errors.Is(err, plan.ErrNoInlineManifests) || errors.Is(err, errContentUnknown):
		return isTrue(operatorsv1alpha1.SubscriptionBundleUnpackFailed, api.ReasonErrorPreventedUnpacking, err.Error())
	case errors.As(err, &planning):
		return isTrue(operatorsv1alpha1.SubscriptionBundleUnpackFailed, api.ReasonEnsureInstallPlanFailed, "error ensuring InstallPlan: "+err.Error())
	case errors.As(err, &groups):
		return isTrue(operatorsv1alpha1.SubscriptionResolutionFailed, api.ReasonErrorPreventedResolution, groups.fact())
	default:
		return isTrue(operatorsv1alpha1.SubscriptionResolutionFailed, api.ReasonErrorPreventedResolution, err.Error())
	}
}

// condition says how the bundle images that a plan needs are.
func (l lookups) condition() operatorsv1alpha1.SubscriptionCondition {
	failed := l.failed()
	switch {
	case failed == nil:
		return isTrue(operatorsv1alpha1.SubscriptionBundleUnpacking, api.ReasonUnpackingInProgress, l.Error())
	case failed.unfit():
		return isTrue(operatorsv1alpha1.SubscriptionBundleUnpackFailed, api.ReasonErrorPreventedUnpacking, failed.fact())
	default:
		return isTrue(operatorsv1alpha1.SubscriptionBundleUnpackFailed, api.ReasonBundleUnpackFailed, failed.fact())
	}
}

// planConditions say where a plan stands.
func planConditions(p *operatorsv1alpha1.InstallPlan) []operatorsv1alpha1.SubscriptionCondition {
	stage := history.StageOf(p)
	kind := stage.Condition()
	if kind == "" {
		return nil
	}
	message := cmp.Or(p.Status.GetCondition(operatorsv1alpha1.InstallPlanInstalled).Message, p.Status.Message)
	if stage.Reason == operatorsv1alpha1.InstallPlanFailed {
		// No condition says why.
		message = "another client set the InstallPlan to Failed; its status does not say why"
	}
	return []operatorsv1alpha1.SubscriptionCondition{isTrue(kind, stage.Reason, message)}
}

func isTrue(kind operatorsv1alpha1.SubscriptionConditionType, reason, message string) operatorsv1alpha1.SubscriptionCondition {
	return operatorsv1alpha1.SubscriptionCondition{Type: kind, Status: corev1.ConditionTrue, Reason: reason, Message: message}
}

// mergeConditions puts the conditions that are true now into the list so far. A
// condition that says the same keeps its time; one that says something else,
// were it only another reason, has changed now. The list is in the order of the
// types, so that it does not jump about.
func mergeConditions(before, wanted []operatorsv1alpha1.SubscriptionCondition, now metav1.Time) []operatorsv1alpha1.SubscriptionCondition {
	var list []operatorsv1alpha1.SubscriptionCondition
	for _, c := range before {
		if !slices.Contains(owned, c.Type) {
			list = append(list, c)
		}
	}
	for _, c := range wanted {
		c.Message = clipped(c.Message)
		c.LastTransitionTime = &now
		i := slices.IndexFunc(before, func(b operatorsv1alpha1.SubscriptionCondition) bool { return b.Equals(c) })
		if i >= 0 {
			c = before[i]
		}
		list = append(list, c)
	}
	slices.SortStableFunc(list, func(a, b operatorsv1alpha1.SubscriptionCondition) int { return cmp.Compare(a.Type, b.Type) })
	return list
}

// clipped gives a message as it can be read and kept. Much of it comes from
// elsewhere; what is no text the API server would keep as something else, so that
// the same status were written again for ever.
func clipped(text string) string { return bundles.Clip(bundles.OneLine(text), maxMessage) }
