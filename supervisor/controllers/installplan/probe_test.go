package installplan

import (
	"testing"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/chandlery/chandlery/supervisor/api"
)

// gaveUp is a plan that was given up with a message.
func gaveUp(message string, statuses ...operatorsv1alpha1.StepStatus) *operatorsv1alpha1.InstallPlan {
	p := planOf(lost, true, statuses...)
	setInstalled(p, operatorsv1alpha1.InstallPlanReasonComponentFailed, message, at(0))
	return p
}

func TestCurable(t *testing.T) {
	const created, unknown, unsupported = operatorsv1alpha1.StepStatusCreated, operatorsv1alpha1.StepStatusUnknown, operatorsv1alpha1.StepStatusUnsupportedResource
	for _, tt := range []struct {
		reason string
		plan   *operatorsv1alpha1.InstallPlan
		want   bool
	}{
		{reason: "a step that may be applied one day", plan: gaveUp("no"+remedy, created, unknown), want: true},
		{reason: "by a version that said something else", plan: gaveUp("no", created, unknown), want: true},
		{reason: "a kind that no plan may hold", plan: gaveUp("no"+remedy, unknown, unsupported)},
		{reason: "content that has changed", plan: caused(gaveUp("no"+remedyContent, unknown, unknown), 0, true)},
		{reason: "another cause", plan: caused(gaveUp("no"+remedy, unknown, unknown), 0, false), want: true},
		{reason: "nothing is left", plan: gaveUp("no"+remedy, created)},
		{reason: "another client declared it failed", plan: planOf(lost, true, unknown)},
		{reason: "under way", plan: planOf(working, true, unknown)},
	} {
		if got := curable(tt.plan); got != tt.want {
			t.Errorf("%s: %v", tt.reason, got)
		}
	}
}

// caused is a plan with the cause that a step could not be applied.
func caused(p *operatorsv1alpha1.InstallPlan, step int, final bool) *operatorsv1alpha1.InstallPlan {
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
		{reason: "it is named", failed: 2, want: 2},
		{reason: "no step is named", failed: -1, applied: []int{0}, want: 1},
		{reason: "a step that there is not", failed: 9, applied: []int{0}, want: 1},
		{reason: "the one that is named is applied", failed: 2, applied: []int{0, 1, 2}, want: 3},
		{reason: "all are", failed: 2, applied: []int{0, 1, 2, 3}, want: -1},
	} {
		p := gaveUp("no", "", "", "", "")
		if tt.failed >= 0 {
			caused(p, tt.failed, false)
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
