package transitions_test

import (
	"testing"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// stage is the visible stage of an InstallPlan. The code below follows the descriptions of the API
// and not the supervisor's code, which it tests.
type stage struct {
	phase, reason string
}

func (s stage) String() string {
	if s.phase == "" || s.phase == "Failed" {
		return s.phase + "/" + s.reason
	}
	return s.phase
}

var (
	unreconciled = stage{phase: "", reason: "InstallPlanNotYetReconciled"}
	asking       = stage{phase: "RequiresApproval", reason: "RequiresApproval"}
	working      = stage{phase: "Installing", reason: "Installing"}
	complete     = stage{phase: "Complete"}
	failed       = stage{phase: "Failed", reason: "InstallPlanFailed"}
	broken       = stage{phase: "Failed", reason: "InstallComponentFailed"}
	missing      = stage{phase: "Missing", reason: "ReferencedInstallPlanNotFound"}
)

// stageOf returns the stage of an InstallPlan.
func stageOf(p *operatorsv1alpha1.InstallPlan) stage {
	phase := string(p.Status.Phase)
	switch phase {
	case "":
		return unreconciled
	case "Complete":
		return complete
	case "Failed":
		for _, c := range p.Status.Conditions {
			if c.Type == "Installed" && c.Status == corev1.ConditionFalse && c.Reason != "" {
				return stage{phase: phase, reason: string(c.Reason)}
			}
		}
		return failed
	default:
		return stage{phase: phase, reason: phase}
	}
}

// told is what a Subscription shows about its InstallPlan.
type told struct {
	plan  types.UID
	stage stage
}

// toldBy reads a status as its users do; it returns false if the status refers to no InstallPlan. A
// status with more than one of the conditions about InstallPlans contradicts itself and matches no
// stage.
func toldBy(status *operatorsv1alpha1.SubscriptionStatus) (told, bool) {
	if status.InstallPlanRef == nil {
		return told{}, false
	}
	stages := []stage{}
	for _, c := range status.Conditions {
		if c.Status != corev1.ConditionTrue {
			continue
		}
		switch c.Type {
		case "InstallPlanPending":
			stages = append(stages, pendingStage(c.Reason))
		case "InstallPlanFailed":
			stages = append(stages, stage{phase: "Failed", reason: c.Reason})
		case "InstallPlanMissing":
			stages = append(stages, stage{phase: "Missing", reason: c.Reason})
		default: // not about InstallPlans
		}
	}
	t := told{plan: status.InstallPlanRef.UID, stage: complete}
	if len(stages) == 1 {
		t.stage = stages[0]
	}
	if len(stages) > 1 {
		t.stage = stage{phase: "Contradiction"}
	}
	return t, true
}

func pendingStage(reason string) stage {
	if reason == unreconciled.reason {
		return unreconciled
	}
	return stage{phase: reason, reason: reason}
}

// TestStages checks this test's interpretation of InstallPlans and Subscriptions with examples.
func TestStages(t *testing.T) {
	failure := func(status corev1.ConditionStatus, reason string) []operatorsv1alpha1.InstallPlanCondition {
		return []operatorsv1alpha1.InstallPlanCondition{{Type: "Installed", Status: status, Reason: operatorsv1alpha1.InstallPlanConditionReason(reason)}}
	}
	pending := operatorsv1alpha1.SubscriptionConditionType("InstallPlanPending")
	for _, c := range []struct {
		plan   operatorsv1alpha1.InstallPlanStatus
		kind   operatorsv1alpha1.SubscriptionConditionType
		reason string
		want   stage
	}{
		{kind: pending, reason: "InstallPlanNotYetReconciled", want: unreconciled},
		{plan: operatorsv1alpha1.InstallPlanStatus{Phase: "RequiresApproval"}, kind: pending, reason: "RequiresApproval", want: asking},
		{plan: operatorsv1alpha1.InstallPlanStatus{Phase: "Installing", Conditions: failure("False", "InstallCheckFailed")}, kind: pending, reason: "Installing", want: working},
		{plan: operatorsv1alpha1.InstallPlanStatus{Phase: "Complete", Conditions: failure("True", "")}, want: complete},
		{plan: operatorsv1alpha1.InstallPlanStatus{Phase: "Failed"}, kind: "InstallPlanFailed", reason: "InstallPlanFailed", want: failed},
		{plan: operatorsv1alpha1.InstallPlanStatus{Phase: "Failed", Conditions: failure("True", "")}, kind: "InstallPlanFailed", reason: "InstallPlanFailed", want: failed},
		{plan: operatorsv1alpha1.InstallPlanStatus{Phase: "Failed", Conditions: failure("False", "InstallComponentFailed")}, kind: "InstallPlanFailed", reason: "InstallComponentFailed", want: broken},
	} {
		if got := stageOf(&operatorsv1alpha1.InstallPlan{Status: c.plan}); got != c.want {
			t.Errorf("a plan with %+v is %s, want %s", c.plan, got, c.want)
		}
		status := operatorsv1alpha1.SubscriptionStatus{InstallPlanRef: &corev1.ObjectReference{UID: "a"}}
		status.Conditions = []operatorsv1alpha1.SubscriptionCondition{
			{Type: "CatalogSourcesUnhealthy", Status: corev1.ConditionTrue},
			{Type: "InstallPlanMissing", Status: corev1.ConditionFalse},
		}
		if c.kind != "" {
			status.Conditions = append(status.Conditions, operatorsv1alpha1.SubscriptionCondition{Type: c.kind, Status: corev1.ConditionTrue, Reason: c.reason})
		}
		if got, _ := toldBy(&status); got != (told{plan: "a", stage: c.want}) {
			t.Errorf("%+v tells %s, want %s", status.Conditions, got.stage, c.want)
		}
		status.Conditions[1].Status, status.Conditions[1].Reason = corev1.ConditionTrue, missing.reason
		got, refers := toldBy(&status)
		if contradicts := got.stage.phase == "Contradiction"; !refers || contradicts != (c.kind != "") || (!contradicts && got.stage != missing) {
			t.Errorf("%+v tells %s", status.Conditions, got.stage)
		}
	}
	if _, refers := toldBy(&operatorsv1alpha1.SubscriptionStatus{}); refers {
		t.Error("a status without a plan tells of one")
	}
}
