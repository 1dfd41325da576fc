package installplan

import (
	"testing"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/chandlery/chandlery/supervisor/api"
)

// failedPlan returns a plan that failed with a message.
func failedPlan(message string, statuses ...operatorsv1alpha1.StepStatus) *operatorsv1alpha1.InstallPlan {
	p := planOf(phaseFailed, true, statuses...)
	setInstalled(p, operatorsv1alpha1.InstallPlanReasonComponentFailed, message, at(0))
	return p
}

func TestMayRecover(t *testing.T) {
	const created, unknown, unsupported = operatorsv1alpha1.StepStatusCreated, operatorsv1alpha1.StepStatusUnknown, operatorsv1alpha1.StepStatusUnsupportedResource
	for _, tt := range []struct {
		reason string
		plan   *operatorsv1alpha1.InstallPlan
		want   bool
	}{
		{reason: "a step that may succeed later", plan: failedPlan("no"+remedy, created, unknown), want: true},
		{reason: "by a version with another message", plan: failedPlan("no", created, unknown), want: true},
		{reason: "a kind that no plan may contain", plan: failedPlan("no"+remedy, unknown, unsupported)},
		{reason: "content that has changed", plan: withCause(failedPlan("no"+remedyContent, unknown, unknown), 0, true)},
		{reason: "another cause", plan: withCause(failedPlan("no"+remedy, unknown, unknown), 0, false), want: true},
		{reason: "nothing is left", plan: failedPlan("no"+remedy, created)},
		{reason: "another client declared it failed", plan: planOf(phaseFailed, true, unknown)},
		{reason: "in progress", plan: planOf(phaseInstalling, true, unknown)},
	} {
		if got := mayRecover(tt.plan); got != tt.want {
			t.Errorf("%s: %v", tt.reason, got)
		}
	}
}

// withCause adds the cause that a step could not be applied to a plan.
func withCause(p *operatorsv1alpha1.InstallPlan, step int, final bool) *operatorsv1alpha1.InstallPlan {
	api.SetCause(p, &api.Cause{Reason: api.ReasonStepFailed, Step: new(step), Final: final})
	return p
}

func TestFailedStep(t *testing.T) {
	for _, tt := range []struct {
		reason  string
		failed  int // below zero for a plan without a cause
		applied []int
		want    int
	}{
		{reason: "the cause names it", failed: 2, want: 2},
		{reason: "the plan has no cause", failed: -1, applied: []int{0}, want: 1},
		{reason: "a step that does not exist", failed: 9, applied: []int{0}, want: 1},
		{reason: "the named step is applied", failed: 2, applied: []int{0, 1, 2}, want: 3},
		{reason: "all steps are applied", failed: 2, applied: []int{0, 1, 2, 3}, want: -1},
	} {
		p := failedPlan("no", "", "", "", "")
		if tt.failed >= 0 {
			withCause(p, tt.failed, false)
		}
		for _, i := range tt.applied {
			p.Status.Plan[i].Status = operatorsv1alpha1.StepStatusCreated
		}
		var want *operatorsv1alpha1.Step
		if tt.want >= 0 {
			want = p.Status.Plan[tt.want]
		}
		if got := failedStep(p); got != want {
			t.Errorf("%s: %+v", tt.reason, got)
		}
	}
}
