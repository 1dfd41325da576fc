package history

import (
	"cmp"
	"strconv"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
)

// PhaseMissing takes the place of a phase where a plan is gone that a Subscription
// still refers to.
const PhaseMissing = "Missing"

// Stage is where an InstallPlan stands. A plan whose message alone changes stays at
// its stage.
type Stage struct {
	// Phase is that of the plan, or PhaseMissing.
	Phase string
	// Reason is that of the Subscription's condition: empty when there is none,
	// which is so for a plan that is Complete.
	Reason string
}

// Missing is the stage of a plan that is gone.
func Missing() Stage {
	return Stage{Phase: PhaseMissing, Reason: operatorsv1alpha1.ReferencedInstallPlanNotFound}
}

// StageOf gives the stage of a plan that is there.
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

// Condition is the type of the condition of a Subscription that tells a stage; empty
// for a plan that is Complete, which no condition tells.
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

// Shown gives the stage that the status of a Subscription tells, of the plan that it
// refers to; false when it refers to none.
func Shown(status *operatorsv1alpha1.SubscriptionStatus) (Stage, bool) {
	if status.InstallPlanRef == nil {
		return Stage{}, false
	}
	told := func(kind operatorsv1alpha1.SubscriptionConditionType) (string, bool) {
		c := status.GetCondition(kind)
		return c.Reason, c.Status == corev1.ConditionTrue
	}
	if reason, is := told(operatorsv1alpha1.SubscriptionInstallPlanMissing); is {
		return Stage{Phase: PhaseMissing, Reason: reason}, true
	}
	if reason, is := told(operatorsv1alpha1.SubscriptionInstallPlanFailed); is {
		return Stage{Phase: string(operatorsv1alpha1.InstallPlanPhaseFailed), Reason: reason}, true
	}
	if reason, is := told(operatorsv1alpha1.SubscriptionInstallPlanPending); is {
		phase := reason
		if reason == operatorsv1alpha1.InstallPlanNotYetReconciled {
			phase = string(operatorsv1alpha1.InstallPlanPhaseNone)
		}
		return Stage{Phase: phase, Reason: reason}, true
	}
	return Stage{Phase: string(operatorsv1alpha1.InstallPlanPhaseComplete)}, true
}

// Shows says whether the status of a Subscription tells the stage that a plan is at:
// whether the Subscription has acknowledged it.
func Shows(status *operatorsv1alpha1.SubscriptionStatus, p *operatorsv1alpha1.InstallPlan) bool {
	stage, refers := Shown(status)
	return refers && status.InstallPlanRef.UID == p.UID && stage == StageOf(p)
}

// Version is a resource version as a number, which only grows for one resource; zero
// for what is none.
func Version(text string) uint64 {
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0
	}
	return n
}
