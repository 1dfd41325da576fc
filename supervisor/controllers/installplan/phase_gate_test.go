package installplan

import (
	"testing"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/transitionlog"
)

func TestShownEntry(t *testing.T) {
	t.Parallel()
	at := func(version string, phase operatorsv1alpha1.InstallPlanPhase) *operatorsv1alpha1.InstallPlan {
		return &operatorsv1alpha1.InstallPlan{
			ObjectMeta: metav1.ObjectMeta{UID: "plan", ResourceVersion: version},
			Status:     operatorsv1alpha1.InstallPlanStatus{Phase: phase},
		}
	}
	showing := func(version string) *operatorsv1alpha1.Subscription {
		sub := &operatorsv1alpha1.Subscription{}
		sub.Status.InstallPlanRef = &corev1.ObjectReference{UID: "plan", ResourceVersion: version}
		sub.Status.SetCondition(operatorsv1alpha1.SubscriptionCondition{
			Type: operatorsv1alpha1.SubscriptionInstallPlanPending, Status: corev1.ConditionTrue, Reason: "Installing",
		})
		return sub
	}
	s := &phaseEntries{}
	for _, p := range []*operatorsv1alpha1.InstallPlan{at("3", "Installing"), at("4", "Failed"), at("6", "Installing"), at("7", "Installing")} {
		s.add(p, false)
	}
	for version, want := range map[string]bool{"3": false, "5": false, "6": true, "7": true} {
		if got, sure := s.shown(showing(version), at("7", "Installing")); got != want || !sure {
			t.Errorf("a Subscription with version %s shows the phase: %v, sure: %v", version, got, sure)
		}
	}
	if got, _ := s.shown(showing("7"), at("9", "RequiresApproval")); got {
		t.Error("a Subscription shows another phase")
	}
	s.add(at("8", "Failed"), false)
	if got, _ := s.shown(showing("7"), at("9", "Installing")); got {
		t.Error("a Subscription shows an entry whose event has not arrived")
	}
}

// TestShownEntryBeforeStart has a plan that existed before the process began. Its Subscription counts,
// unless the transition log is ahead of the status.
func TestShownEntryBeforeStart(t *testing.T) {
	t.Parallel()
	p := &operatorsv1alpha1.InstallPlan{
		ObjectMeta: metav1.ObjectMeta{UID: "plan", ResourceVersion: "7"},
		Status:     operatorsv1alpha1.InstallPlanStatus{Phase: operatorsv1alpha1.InstallPlanPhaseInstalling},
	}
	entry := func(plan types.UID, version, phase string) transitionlog.Transition {
		return transitionlog.Transition{UID: plan, Version: version, Phase: phase}
	}
	first := entry("plan", "3", "Installing")
	for name, c := range map[string]struct {
		ledger transitionlog.Log
		want   bool
	}{
		"without a log":                          {nil, true},
		"with a log that is not ahead":           {transitionlog.Log{first}, true},
		"after another plan":                     {transitionlog.Log{entry("other", "9", "Complete"), first}, true},
		"with a later transition":                {transitionlog.Log{first, entry("plan", "4", "Failed")}, false},
		"with a later entry into the same phase": {transitionlog.Log{first, entry("plan", "4", "Failed"), entry("plan", "6", "Installing")}, false},
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
			s := &phaseEntries{}
			s.add(p, true)
			if got, sure := s.shown(sub, p); got != c.want || sure {
				t.Errorf("the Subscription shows the phase: %v, sure: %v", got, sure)
			}
		})
	}
}
