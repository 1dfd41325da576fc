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

// Bounds of the condition about an update that waits.
const (
	// waitingGrace is how long a version may be installed before the condition shows it. Most
	// versions succeed earlier.
	waitingGrace = 30 * time.Second
	// waitingInterval is the least time between two changes of the condition. The message of the
	// version may change with every pod.
	waitingInterval = time.Minute
)

// waitingVersion returns the version that a Subscription is being updated to and that waits for
// something other than its plan; nil for none. An unhealthy version has a condition of its own.
func waitingVersion(d *decision, p *operatorsv1alpha1.InstallPlan) *operatorsv1alpha1.ClusterServiceVersion {
	csv, from := d.present.current, d.present.installed
	if csv == nil || from == nil || from == csv || d.withdraw != nil || beingDeleted(csv) || unhealthyVersion(d, p) {
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

// waitingCondition returns the condition about a version that waits, without a time. The installed
// version stays until then.
func waitingCondition(csv, installed *operatorsv1alpha1.ClusterServiceVersion) operatorsv1alpha1.SubscriptionCondition {
	message := fmt.Sprintf("clusterserviceversion %s is in phase %s: %s; %s stays installed until then", csv.Name, csv.Status.Phase, csv.Status.Message, installed.Name)
	if refuses(csv) {
		message += fmt.Sprintf("; to upgrade anyway, override condition Upgradeable in spec.overrides of OperatorCondition %s", csv.Spec.Replaces)
	}
	return isTrue(api.ConditionNewerVersionHeld, string(csv.Status.Reason), clipped(message))
}

// fromResolution reports whether a reason of ConditionNewerVersionHeld comes from the resolution;
// other reasons are those of a version that waits.
func fromResolution(reason string) bool {
	return reason == api.ReasonPinned || reason == api.ReasonConstraintsNotSatisfiable
}

// concerns reports whether a condition is about a version that waits, and not about an earlier one.
func concerns(c operatorsv1alpha1.SubscriptionCondition, csv *operatorsv1alpha1.ClusterServiceVersion) bool {
	return c.Status == corev1.ConditionTrue && !fromResolution(c.Reason) && c.LastTransitionTime != nil && !c.LastTransitionTime.Before(&csv.CreationTimestamp)
}

// refuses reports whether a version waits because its predecessor must not be upgraded.
func refuses(csv *operatorsv1alpha1.ClusterServiceVersion) bool {
	return csv.Status.Reason == operatorsv1alpha1.CSVReasonOperatorConditionNotUpgradeable
}

// waiting returns the condition about an update that waits, and when to check it again; nil for
// none. It returns a recent condition unchanged, even if the version has another message now.
func waiting(d *decision, p *operatorsv1alpha1.InstallPlan, now time.Time) (shown *operatorsv1alpha1.SubscriptionCondition, next time.Time) {
	csv := waitingVersion(d, p)
	if csv == nil {
		return nil, time.Time{}
	}
	c := waitingCondition(csv, d.present.installed)
	before := d.subscription.Status.GetCondition(api.ConditionNewerVersionHeld)
	if !concerns(before, csv) {
		due := phaseSince(csv).Add(waitingGrace)
		if refuses(csv) || !now.Before(due) {
			return &c, time.Time{}
		}
		return nil, due
	}
	due := before.LastTransitionTime.Add(waitingInterval)
	if before.Equals(c) || !now.Before(due) {
		return &c, time.Time{}
	}
	return &before, due
}

// phaseSince returns when a version entered its phase.
func phaseSince(csv *operatorsv1alpha1.ClusterServiceVersion) metav1.Time {
	if at := csv.Status.LastTransitionTime; at != nil {
		return *at
	}
	return csv.CreationTimestamp
}

// withWaiting returns the conditions with the one about an update that waits. It takes precedence
// over a newer version that cannot be installed.
func withWaiting(
	conditions []operatorsv1alpha1.SubscriptionCondition, d *decision, p *operatorsv1alpha1.InstallPlan, now time.Time,
) []operatorsv1alpha1.SubscriptionCondition {
	shown, _ := waiting(d, p, now)
	conditions = slices.DeleteFunc(conditions, func(c operatorsv1alpha1.SubscriptionCondition) bool {
		return c.Type == api.ConditionNewerVersionHeld && (shown != nil || !fromResolution(c.Reason))
	})
	if shown != nil {
		conditions = append(conditions, *shown)
	}
	return conditions
}
