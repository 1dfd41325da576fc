package installplan

import (
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
)

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

// applied reports whether a step is done.
func applied(s operatorsv1alpha1.StepStatus) bool {
	return s == operatorsv1alpha1.StepStatusCreated || s == operatorsv1alpha1.StepStatusPresent
}

// remaining counts the steps that are not done.
func remaining(steps []*operatorsv1alpha1.Step) int {
	n := 0
	for _, s := range steps {
		if !applied(s.Status) {
			n++
		}
	}
	return n
}
