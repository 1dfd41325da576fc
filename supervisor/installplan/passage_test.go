package installplan

import (
	"testing"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestPassageThatIsMeant(t *testing.T) {
	t.Parallel()
	at := func(version string, phase operatorsv1alpha1.InstallPlanPhase) *operatorsv1alpha1.InstallPlan {
		return &operatorsv1alpha1.InstallPlan{
			ObjectMeta: metav1.ObjectMeta{UID: "plan", ResourceVersion: version},
			Status:     operatorsv1alpha1.InstallPlanStatus{Phase: phase},
		}
	}
	tells := func(version string) *operatorsv1alpha1.SubscriptionStatus {
		status := &operatorsv1alpha1.SubscriptionStatus{InstallPlanRef: &corev1.ObjectReference{UID: "plan", ResourceVersion: version}}
		status.SetCondition(operatorsv1alpha1.SubscriptionCondition{
			Type: operatorsv1alpha1.SubscriptionInstallPlanPending, Status: corev1.ConditionTrue, Reason: "Installing",
		})
		return status
	}
	s := &passages{}
	for _, p := range []*operatorsv1alpha1.InstallPlan{at("3", "Installing"), at("4", "Failed"), at("6", "Installing"), at("7", "Installing")} {
		s.note(p, false)
	}
	for version, want := range map[string]bool{"3": false, "5": false, "6": true, "7": true} {
		if got := s.shows(tells(version), at("7", "Installing")); got != want {
			t.Errorf("what is told of version %s counts: %v", version, got)
		}
	}
	if s.shows(tells("7"), at("9", "RequiresApproval")) {
		t.Error("another phase counts")
	}
	s.note(at("8", "Failed"), false)
	if s.shows(tells("7"), at("9", "Installing")) {
		t.Error("what was told counts for a version whose event has not come")
	}
	old := &passages{}
	old.note(at("7", "Installing"), true)
	if !old.shows(tells("3"), at("7", "Installing")) {
		t.Error("where nothing is known of the past, what is told does not count")
	}
}
