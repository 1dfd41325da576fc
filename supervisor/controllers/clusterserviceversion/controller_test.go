package clusterserviceversion

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chandlery/chandlery/supervisor/controllers/clusterserviceversion/phase"
)

// TestSettling checks that small additions to a recent status are not written at once.
func TestSettling(t *testing.T) {
	for name, tc := range map[string]struct {
		o       phase.Input
		next    phase.Transition
		written time.Duration // ago
		want    time.Duration
	}{
		"MoreToSay":      {o: good(installs, "InstallWaiting"), next: phase.Transition{Phase: installs, Reason: "InstallWaiting", Message: "more"}, want: time.Second},
		"MoreToSayLater": {o: good(installs, "InstallWaiting"), next: phase.Transition{Phase: installs, Reason: "InstallWaiting", Message: "more"}, written: 2 * time.Second},
		"HalfWay":        {o: good(pending, "RequirementsNotMet"), next: phase.Transition{Phase: pending, Reason: "RequirementsNotMet", Message: "more"}, written: 400 * time.Millisecond, want: 600 * time.Millisecond},
		"NothingToSay":   {o: good(succeeded, "InstallSucceeded"), next: phase.Transition{Phase: succeeded, Reason: "InstallSucceeded", Message: "as before"}},
		"AnotherReason":  {o: good(installs, "InstallSucceeded"), next: phase.Transition{Phase: installs, Reason: "InstallWaiting", Message: "as before"}},
		"AnotherPhase":   {o: good(installs, "InstallSucceeded"), next: phase.Transition{Phase: succeeded, Reason: "InstallSucceeded", Message: "as before"}},
		"AfterWork":      {o: good(installs, "InstallWaiting"), next: phase.Transition{Phase: installs, Reason: "InstallWaiting", Message: "more", Actions: []phase.Action{phase.Switch}}},
	} {
		t.Run(name, func(t *testing.T) {
			tc.o.CSV.Status.LastUpdateTime = new(metav1.NewTime(noon().Add(-tc.written)))
			if got := statusWriteDelay(&state{Input: tc.o}, tc.next); got != tc.want {
				t.Errorf("it is left alone for %s, want %s", got, tc.want)
			}
		})
	}
}
