package installplan

import (
	"testing"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
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
		{reason: "content that has changed", plan: gaveUp("no"+remedyContent, unknown, unknown)},
		{reason: "content that has changed, given up by a former release", plan: gaveUp("no; mend the cause and delete the InstallPlan to try again", unknown, unknown)},
		{reason: "nothing is left", plan: gaveUp("no"+remedy, created)},
		{reason: "another client declared it failed", plan: planOf(lost, true, unknown)},
		{reason: "under way", plan: planOf(working, true, unknown)},
	} {
		if got := curable(tt.plan); got != tt.want {
			t.Errorf("%s: %v", tt.reason, got)
		}
	}
}

func TestFailedStep(t *testing.T) {
	for _, tt := range []struct {
		reason, message string
		applied         []int
		want            int
	}{
		{reason: "it is named", message: "error applying ConfigMap two of lamp.v1: no", want: 2},
		{reason: "its kind is not served", message: "api-server resource not found installing ConfigMap one: GroupVersionKind", want: 1},
		{reason: "a name that begins alike", message: "error applying ConfigMap two-more of lamp.v1: no", want: 3},
		{reason: "no step is named", message: "no", applied: []int{0}, want: 1},
		{reason: "the one that is named is applied", message: "error applying ConfigMap two of lamp.v1: no", applied: []int{0, 1, 2}, want: 3},
		{reason: "all are", applied: []int{0, 1, 2, 3}, want: -1},
	} {
		p := gaveUp(tt.message, "", "", "", "")
		for i, name := range []string{"zero", "one", "two", "two-more"} {
			p.Status.Plan[i].Resource.Name = name
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
