package installplan

import (
	"slices"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
