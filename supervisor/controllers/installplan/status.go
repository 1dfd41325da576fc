package installplan

import (
	"slices"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chandlery/chandlery/supervisor/plansteps"
)

// setInstalled sets the condition Installed: true without a reason, else false with it. An unchanged
// condition keeps its times.
func setInstalled(p *operatorsv1alpha1.InstallPlan, reason operatorsv1alpha1.InstallPlanConditionReason, message string, now metav1.Time) {
	wanted := operatorsv1alpha1.ConditionMet(operatorsv1alpha1.InstallPlanInstalled, &now)
	if reason != "" {
		wanted = operatorsv1alpha1.ConditionFailed(operatorsv1alpha1.InstallPlanInstalled, reason, message, &now)
	}
	current := p.Status.GetCondition(operatorsv1alpha1.InstallPlanInstalled)
	if current.Status == wanted.Status && current.Reason == wanted.Reason && current.Message == wanted.Message {
		return
	}
	p.Status.SetCondition(wanted)
}

// removeInstalled removes the condition Installed if it has a reason.
func removeInstalled(p *operatorsv1alpha1.InstallPlan, reason operatorsv1alpha1.InstallPlanConditionReason) {
	p.Status.Conditions = slices.DeleteFunc(p.Status.Conditions, func(c operatorsv1alpha1.InstallPlanCondition) bool {
		return c.Type == operatorsv1alpha1.InstallPlanInstalled && c.Reason == reason
	})
}

// nextPhase returns the phase that a plan enters before its steps are applied. ok is false when the
// phase stays.
func nextPhase(p *operatorsv1alpha1.InstallPlan) (phase operatorsv1alpha1.InstallPlanPhase, ok bool) {
	switch p.Status.Phase {
	case operatorsv1alpha1.InstallPlanPhaseNone, operatorsv1alpha1.InstallPlanPhasePlanning:
		// A plan without steps is not complete yet.
		if len(p.Status.Plan) == 0 {
			return "", false
		}
		if p.Spec.Approved {
			return operatorsv1alpha1.InstallPlanPhaseInstalling, true
		}
		return operatorsv1alpha1.InstallPlanPhaseRequiresApproval, true
	case operatorsv1alpha1.InstallPlanPhaseRequiresApproval:
		return operatorsv1alpha1.InstallPlanPhaseInstalling, p.Spec.Approved
	default:
		return "", false
	}
}

// waitsForApproval reports whether an existing plan waits for its approval.
func waitsForApproval(p *operatorsv1alpha1.InstallPlan) bool {
	return p.Status.Phase == operatorsv1alpha1.InstallPlanPhaseRequiresApproval && !p.Spec.Approved && p.DeletionTimestamp.IsZero()
}

// remaining counts the steps that are not done.
func remaining(steps []*operatorsv1alpha1.Step) int {
	n := 0
	for _, s := range steps {
		if !plansteps.IsApplied(s.Status) {
			n++
		}
	}
	return n
}
