package installplan

import (
	"testing"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/history"
)

func TestPassageThatIsMeant(t *testing.T) {
	t.Parallel()
	at := func(version string, phase operatorsv1alpha1.InstallPlanPhase) *operatorsv1alpha1.InstallPlan {
		return &operatorsv1alpha1.InstallPlan{
			ObjectMeta: metav1.ObjectMeta{UID: "plan", ResourceVersion: version},
			Status:     operatorsv1alpha1.InstallPlanStatus{Phase: phase},
		}
	}
	tells := func(version string) *operatorsv1alpha1.Subscription {
		sub := &operatorsv1alpha1.Subscription{}
		sub.Status.InstallPlanRef = &corev1.ObjectReference{UID: "plan", ResourceVersion: version}
		sub.Status.SetCondition(operatorsv1alpha1.SubscriptionCondition{
			Type: operatorsv1alpha1.SubscriptionInstallPlanPending, Status: corev1.ConditionTrue, Reason: "Installing",
		})
		return sub
	}
	s := &passages{}
	for _, p := range []*operatorsv1alpha1.InstallPlan{at("3", "Installing"), at("4", "Failed"), at("6", "Installing"), at("7", "Installing")} {
		s.note(p, false)
	}
	for version, want := range map[string]bool{"3": false, "5": false, "6": true, "7": true} {
		if got, sure := s.shows(tells(version), at("7", "Installing")); got != want || !sure {
			t.Errorf("what is told of version %s counts: %v, for sure: %v", version, got, sure)
		}
	}
	if got, _ := s.shows(tells("7"), at("9", "RequiresApproval")); got {
		t.Error("another phase counts")
	}
	s.note(at("8", "Failed"), false)
	if got, _ := s.shows(tells("7"), at("9", "Installing")); got {
		t.Error("what was told counts for a version whose event has not come")
	}
}

// TestPassageOfThePast has a plan that existed before the process began. Its Subscription counts,
// unless the transition log is ahead of the status.
func TestPassageOfThePast(t *testing.T) {
	t.Parallel()
	p := &operatorsv1alpha1.InstallPlan{
		ObjectMeta: metav1.ObjectMeta{UID: "plan", ResourceVersion: "7"},
		Status:     operatorsv1alpha1.InstallPlanStatus{Phase: operatorsv1alpha1.InstallPlanPhaseInstalling},
	}
	entry := func(plan types.UID, version, phase string) history.Transition {
		return history.Transition{UID: plan, Version: version, Phase: phase}
	}
	first := entry("plan", "3", "Installing")
	for name, c := range map[string]struct {
		ledger history.Log
		want   bool
	}{
		"without a ledger":                {nil, true},
		"with a ledger that is no longer": {history.Log{first}, true},
		"after another plan":              {history.Log{entry("other", "9", "Complete"), first}, true},
		"with more to tell":               {history.Log{first, entry("plan", "4", "Failed")}, false},
		"with the same to tell once more": {history.Log{first, entry("plan", "4", "Failed"), entry("plan", "6", "Installing")}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sub := &operatorsv1alpha1.Subscription{}
			sub.Status.InstallPlanRef = &corev1.ObjectReference{UID: "plan", ResourceVersion: "3"}
			sub.Status.SetCondition(operatorsv1alpha1.SubscriptionCondition{
				Type: operatorsv1alpha1.SubscriptionInstallPlanPending, Status: corev1.ConditionTrue, Reason: "Installing",
			})
			if c.ledger != nil {
				sub.Annotations = map[string]string{api.AnnotationTransitions: c.ledger.Text()}
			}
			s := &passages{}
			s.note(p, true)
			if got, sure := s.shows(sub, p); got != c.want || sure {
				t.Errorf("it counts: %v, for sure: %v", got, sure)
			}
		})
	}
}
