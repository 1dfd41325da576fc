package subscription

import (
	"fmt"
	"slices"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chandlery/chandlery/supervisor/api"
)

// Bounds of what is told of an update that waits.
const (
	// waitingPatience is how long a version may be on its way before that is worth
	// telling: most are there sooner.
	waitingPatience = 30 * time.Second
	// waitingRest is how long what was told of a version stays as it is. Its message may
	// change with every pod that comes and goes.
	waitingRest = time.Minute
)

// awaits gives the version that a Subscription is being updated to and that waits for
// something other than its plan; nil for none. What is wrong with one that is unwell is
// told as such.
func (d *decision) awaits(p *operatorsv1alpha1.InstallPlan) *operatorsv1alpha1.ClusterServiceVersion {
	csv, from := d.present.current, d.present.installed
	if csv == nil || from == nil || from == csv || d.withdraw != nil || leaving(csv) || unwell(d, p) {
		return nil
	}
	switch csv.Status.Phase {
	case operatorsv1alpha1.CSVPhasePending:
		reason := csv.Status.Reason
		if reason == operatorsv1alpha1.CSVReasonRequirementsUnknown || reason == operatorsv1alpha1.CSVReasonRequirementsNotMet {
			return nil
		}
		return csv
	case operatorsv1alpha1.CSVPhaseInstallReady, operatorsv1alpha1.CSVPhaseInstalling:
		return csv
	default:
		return nil
	}
}

// awaited is the condition for a version that is waited for, without a time.
func (d *decision) awaited(csv *operatorsv1alpha1.ClusterServiceVersion) operatorsv1alpha1.SubscriptionCondition {
	message := fmt.Sprintf("clusterserviceversion %s is in phase %s: %s; %s stays until then", csv.Name, csv.Status.Phase, csv.Status.Message, d.present.installed.Name)
	if refuses(csv) {
		message += fmt.Sprintf("; to upgrade nevertheless, override condition Upgradeable in spec.overrides of OperatorCondition %s", csv.Spec.Replaces)
	}
	return isTrue(api.ConditionNewerVersionHeld, string(csv.Status.Reason), clipped(message))
}

// answered reports whether a reason of ConditionNewerVersionHeld comes from the resolution; other reasons are those
// of a version that waits.
func answered(reason string) bool {
	return reason == api.ReasonPinned || reason == api.ReasonConstraintsNotSatisfiable
}

// concerns reports whether a condition is about a version that waits, and not about an earlier one.
func concerns(c operatorsv1alpha1.SubscriptionCondition, csv *operatorsv1alpha1.ClusterServiceVersion) bool {
	return c.Status == corev1.ConditionTrue && !answered(c.Reason) && c.LastTransitionTime != nil && !c.LastTransitionTime.Before(&csv.CreationTimestamp)
}

// refuses says whether a version waits because its predecessor is not to be upgraded.
func refuses(csv *operatorsv1alpha1.ClusterServiceVersion) bool {
	return csv.Status.Reason == operatorsv1alpha1.CSVReasonOperatorConditionNotUpgradeable
}

// waiting is the condition for what an update waits for, and when that has to be looked
// at again; nil while there is nothing to tell. What was told a moment ago stays as it
// was, whatever the version says meanwhile.
func (d *decision) waiting(p *operatorsv1alpha1.InstallPlan, now time.Time) (told *operatorsv1alpha1.SubscriptionCondition, again time.Time) {
	csv := d.awaits(p)
	if csv == nil {
		return nil, time.Time{}
	}
	c := d.awaited(csv)
	before := d.subscription.Status.GetCondition(api.ConditionNewerVersionHeld)
	if !concerns(before, csv) {
		due := since(csv).Add(waitingPatience)
		if refuses(csv) || !now.Before(due) {
			return &c, time.Time{}
		}
		return nil, due
	}
	due := before.LastTransitionTime.Add(waitingRest)
	if before.Equals(c) || !now.Before(due) {
		return &c, time.Time{}
	}
	return &before, due
}

// since is when a version came to its phase.
func since(csv *operatorsv1alpha1.ClusterServiceVersion) metav1.Time {
	if at := csv.Status.LastTransitionTime; at != nil {
		return *at
	}
	return csv.CreationTimestamp
}

// withWaiting puts what an update waits for into the conditions. It goes before what
// keeps a still newer version: one thing after the other.
func (d *decision) withWaiting(
	conditions []operatorsv1alpha1.SubscriptionCondition, p *operatorsv1alpha1.InstallPlan, now time.Time,
) []operatorsv1alpha1.SubscriptionCondition {
	told, _ := d.waiting(p, now)
	conditions = slices.DeleteFunc(conditions, func(c operatorsv1alpha1.SubscriptionCondition) bool {
		return c.Type == api.ConditionNewerVersionHeld && (told != nil || !answered(c.Reason))
	})
	if told != nil {
		conditions = append(conditions, *told)
	}
	return conditions
}
