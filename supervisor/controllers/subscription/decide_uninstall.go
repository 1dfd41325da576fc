package subscription

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/plansteps"
)

// planGrace is how long a plan in progress may continue after the deletion of its Subscription. Its
// remaining steps would otherwise recreate objects.
const planGrace = 30 * time.Second

// awaitsUninstall reports whether a Subscription is being deleted and waits for the removal of its
// operator.
func awaitsUninstall(sub *operatorsv1alpha1.Subscription) bool {
	return !sub.DeletionTimestamp.IsZero() && slices.Contains(sub.Finalizers, api.FinalizerUninstall)
}

// uninstallStep is the next step of an uninstallation. Without work and without a wait, the
// Subscription may be deleted.
type uninstallStep struct {
	// record is the next value of api.AnnotationUninstalls; nil if it has that value.
	record *string
	// plans, versions and dependents are the objects to delete.
	plans      []*operatorsv1alpha1.InstallPlan
	versions   []*operatorsv1alpha1.ClusterServiceVersion
	dependents []*operatorsv1alpha1.Subscription
	// reason and message state what the uninstallation waits for; empty for nothing.
	reason, message string
	// next is when to check again without an event.
	next time.Time
	// kept states why nothing is uninstalled, where that is not obvious.
	kept string
}

// waitingFor returns a step that also waits.
func (s uninstallStep) waitingFor(reason, format string, args ...any) uninstallStep {
	s.reason, s.message = reason, fmt.Sprintf(format, args...)
	return s
}

// done reports whether nothing is left to do and to wait for.
func (s uninstallStep) done() bool { return len(s.plans) == 0 && s.reason == "" && s.record == nil }

// conditions returns the conditions of a Subscription with the state of its uninstallation. It
// drops the condition about newer versions.
func (s uninstallStep) conditions(sub *operatorsv1alpha1.Subscription, now metav1.Time) []operatorsv1alpha1.SubscriptionCondition {
	before := sub.Status.Conditions
	kept := slices.DeleteFunc(retained(before, owned), func(c operatorsv1alpha1.SubscriptionCondition) bool {
		return c.Type == api.ConditionUninstalling || c.Type == api.ConditionNewerVersionHeld
	})
	return mergeConditions(before, append(kept, isTrue(api.ConditionUninstalling, s.reason, s.message)), now)
}

// nextUninstallStep returns the next step of an uninstallation. Each pass begins with the existing
// objects, so that it may be interrupted anywhere.
func nextUninstallStep(o *namespaceState, sub *operatorsv1alpha1.Subscription, now time.Time) uninstallStep {
	if sub.Spec == nil || !uninstalls(sub) {
		return uninstallStep{kept: "annotation " + api.AnnotationOnDelete + " no longer requests it"}
	}
	if other := remainingOwner(o.subscriptions, sub); other != nil {
		return uninstallStep{kept: "subscription " + other.Name + " also uses package " + sub.Spec.Package}
	}
	needs := dependencies{o}
	mine := needs.versionsOf(sub)
	rest := without(o.versions, mine)
	if by, what := needs.required(mine, rest); by != nil && !cleanupBegun(sub, mine) {
		return uninstallStep{}.waitingFor(api.ReasonStillRequired, "clusterserviceversion %s requires %s, which only %s provides; uninstall the operator that requires it too, "+
			"or remove annotation %s to keep this operator", by.Name, what, namesOf(mine), api.AnnotationOnDelete)
	}
	text, recorded := sub.Annotations[api.AnnotationUninstalls]
	dependents := strings.Split(text, ",")
	if !recorded {
		dependents = needs.unneeded(mine, needs.exclusivePlans(sub))
	}
	// A plan in progress may install versions that need more.
	step := deletePlans(o, sub, dependents, now)
	switch {
	case step.reason != "":
		return step
	case !recorded:
		return uninstallStep{record: new(strings.Join(dependents, ","))}
	case len(step.plans) > 0:
		return step
	case len(mine) > 0:
		step.versions = slices.DeleteFunc(slices.Clone(mine), deletionBegun)
		return step.waitingFor(api.ReasonWaitingOnCleanup, "waiting for clusterserviceversion %s", cleanupProgress(mine))
	default:
		return deleteDependents(needs, sub, dependents)
	}
}

// cleanupBegun reports whether the newest versions of a Subscription are being deleted with it. It
// is then too late to wait for the versions that need them. Older versions do not count: each update
// deletes them.
func cleanupBegun(sub *operatorsv1alpha1.Subscription, mine []*operatorsv1alpha1.ClusterServiceVersion) bool {
	_, recorded := sub.Annotations[api.AnnotationUninstalls]
	return recorded && slices.ContainsFunc(unreplaced(mine), deletionBegun)
}

func deletionBegun(csv *operatorsv1alpha1.ClusterServiceVersion) bool {
	return !csv.DeletionTimestamp.IsZero()
}

// deletePlans returns a step that deletes the plans which would reinstall the package, or waits for
// them. The dependents, which are uninstalled too, do not count as users of a plan.
func deletePlans(o *namespaceState, sub *operatorsv1alpha1.Subscription, dependents []string, now time.Time) uninstallStep {
	step := uninstallStep{}
	limit := sub.DeletionTimestamp.Add(planGrace)
	for _, name := range slices.Sorted(maps.Keys(o.plans)) {
		p := o.plans[name]
		if complete(p) || versionFor(p, sub) == "" || !p.DeletionTimestamp.IsZero() {
			continue
		}
		shared := slices.ContainsFunc(o.subscriptions, func(other *operatorsv1alpha1.Subscription) bool {
			return !slices.Contains(dependents, other.Name) && (belongsTo(p, other) || serves(p, other))
		})
		switch {
		case running(p) && (shared || now.Before(limit)):
			if now.Before(limit) {
				step.next = limit
			}
			step = step.waitingFor(api.ReasonWaitingOnInstallPlan, "waiting for InstallPlan %s, which installs %s",
				p.Name, plansteps.VersionOf(p, sub.Spec.Package))
		case !shared:
			step.plans = append(step.plans, p)
		}
	}
	return step
}

// deleteDependents returns a step that deletes those of the recorded Subscriptions that no other
// operator needs now.
func deleteDependents(needs dependencies, sub *operatorsv1alpha1.Subscription, names []string) uninstallStep {
	var (
		step uninstallStep
		left []string
	)
	for _, other := range needs.subscriptions {
		if !slices.Contains(names, other.Name) || generatedBy(other) == "" {
			continue
		}
		versions := needs.versionsOf(other)
		recorded := func(csv *operatorsv1alpha1.ClusterServiceVersion) bool { return needs.ofAny(names, csv) }
		remaining := slices.DeleteFunc(without(needs.versions, versions), recorded)
		if !needs.anyLacks(remaining, versions) && remainingOwner(needs.subscriptions, other) == nil {
			step.dependents, left = append(step.dependents, other), append(left, other.Name)
		}
	}
	for _, other := range needs.deleting {
		if other.UID != sub.UID && slices.Contains(names, other.Name) && generatedBy(other) != "" {
			left = append(left, other.Name)
		}
	}
	if len(left) == 0 {
		return step
	}
	slices.Sort(left)
	return step.waitingFor(api.ReasonWaitingOnDependencies, "waiting for the removal of unused dependencies: subscription %s", strings.Join(left, ", "))
}

func namesOf(csvs []*operatorsv1alpha1.ClusterServiceVersion) string {
	names := make([]string, 0, len(csvs))
	for _, csv := range csvs {
		names = append(names, csv.Name)
	}
	return strings.Join(names, ", ")
}

// cleanupProgress returns the progress of versions that are being deleted, from their status
// messages.
func cleanupProgress(csvs []*operatorsv1alpha1.ClusterServiceVersion) string {
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
