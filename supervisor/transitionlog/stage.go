package transitionlog

import (
	"cmp"
	"strconv"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
)

// PhaseMissing is the phase of a deleted plan to which a Subscription still refers.
const PhaseMissing = "Missing"

// Stage is the stage of an InstallPlan. A change of the message alone does not change the stage.
type Stage struct {
	// Phase is the phase of the plan, or PhaseMissing.
	Phase string
	// Reason is the reason of the Subscription's condition. It is empty if there is no condition, as for a plan that
	// is Complete.
	Reason string
}

// Missing returns the stage of a deleted plan.
func Missing() Stage {
	return Stage{Phase: PhaseMissing, Reason: operatorsv1alpha1.ReferencedInstallPlanNotFound}
}

// StageOf returns the stage of an existing plan.
func StageOf(p *operatorsv1alpha1.InstallPlan) Stage {
	switch phase := p.Status.Phase; phase {
	case operatorsv1alpha1.InstallPlanPhaseComplete:
		return Stage{Phase: string(phase)}
	case operatorsv1alpha1.InstallPlanPhaseFailed:
		installed := p.Status.GetCondition(operatorsv1alpha1.InstallPlanInstalled)
		reason := ""
		if installed.Status == corev1.ConditionFalse {
			reason = string(installed.Reason)
		}
		return Stage{Phase: string(phase), Reason: cmp.Or(reason, operatorsv1alpha1.InstallPlanFailed)}
	default:
		return Stage{Phase: string(phase), Reason: cmp.Or(string(phase), operatorsv1alpha1.InstallPlanNotYetReconciled)}
	}
}

// Condition returns the type of the Subscription's condition for a stage. It is empty for a plan that is
// Complete, which has no condition.
func (s Stage) Condition() operatorsv1alpha1.SubscriptionConditionType {
	switch s.Phase {
	case string(operatorsv1alpha1.InstallPlanPhaseComplete):
		return ""
	case string(operatorsv1alpha1.InstallPlanPhaseFailed):
		return operatorsv1alpha1.SubscriptionInstallPlanFailed
	case PhaseMissing:
		return operatorsv1alpha1.SubscriptionInstallPlanMissing
	default:
		return operatorsv1alpha1.SubscriptionInstallPlanPending
	}
}

// Shown returns the stage that the status of a Subscription shows for its plan; false if it refers to no plan.
func Shown(status *operatorsv1alpha1.SubscriptionStatus) (Stage, bool) {
	if status.InstallPlanRef == nil {
		return Stage{}, false
	}
	condition := func(kind operatorsv1alpha1.SubscriptionConditionType) (string, bool) {
		c := status.GetCondition(kind)
		return c.Reason, c.Status == corev1.ConditionTrue
	}
	if reason, is := condition(operatorsv1alpha1.SubscriptionInstallPlanMissing); is {
		return Stage{Phase: PhaseMissing, Reason: reason}, true
	}
	if reason, is := condition(operatorsv1alpha1.SubscriptionInstallPlanFailed); is {
		return Stage{Phase: string(operatorsv1alpha1.InstallPlanPhaseFailed), Reason: reason}, true
	}
	if reason, is := condition(operatorsv1alpha1.SubscriptionInstallPlanPending); is {
		phase := reason
		if reason == operatorsv1alpha1.InstallPlanNotYetReconciled {
			phase = string(operatorsv1alpha1.InstallPlanPhaseNone)
		}
		return Stage{Phase: phase, Reason: reason}, true
	}
	return Stage{Phase: string(operatorsv1alpha1.InstallPlanPhaseComplete)}, true
}

// Shows reports whether the status of a Subscription shows the stage of a plan. The Subscription has then
// acknowledged it.
func Shows(status *operatorsv1alpha1.SubscriptionStatus, p *operatorsv1alpha1.InstallPlan) bool {
	stage, refers := Shown(status)
	return refers && status.InstallPlanRef.UID == p.UID && stage == StageOf(p)
}

// Version returns a resource version as a number, which only increases for one resource; zero for an invalid
// one.
func Version(text string) uint64 {
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0
	}
	return n
}
