package cleanup

import (
	"testing"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestPausesOfCleanUp(t *testing.T) {
	waits, stuck := stageResult{count: 1}, stageResult{count: 1, stuck: "x is held"}
	decides, moves := stageResult{note: "a conversion is needed"}, stageResult{count: 1, progressed: true}
	cases := map[string]struct {
		reason string
		left   stageResult
		quiet  time.Duration
		want   time.Duration
	}{
		"Moves":      {"what moves is looked at soon", moves, time.Hour, time.Second},
		"Waits":      {"what waits now and then", waits, 0, 5 * time.Second},
		"WaitsLong":  {"the longer it has waited, the less often", waits, 2 * time.Minute, 30 * time.Second},
		"Stuck":      {"what is stuck less often from the first", stuck, time.Minute, 20 * time.Second},
		"StuckLong":  {"but not rarely for ever", stuck, 2 * time.Minute, 30 * time.Second},
		"Decides":    {"who has to decide may be at work", decides, time.Second, 5 * time.Second},
		"DecidesDay": {"or asleep, and comes back some time", decides, 24 * time.Hour, 5 * time.Minute},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := tc.left.delay(tc.quiet); got != tc.want {
				t.Errorf("%s\ndelay(%s) = %s, want %s", tc.reason, tc.quiet, got, tc.want)
			}
		})
	}
}

// TestCleanUpAtRest counts the passes of a clean-up that waits for a user overnight.
func TestCleanUpAtRest(t *testing.T) {
	left := stageResult{note: "a conversion is needed"}
	csv := kettle()
	csv.Status = *waitingFor("here", left).Status(operatorsv1alpha1.ClusterServiceVersionStatus{Phase: succeeded}, noon())
	looks := 0
	for now := noon(); now.Before(noon().Add(8 * time.Hour)); looks++ {
		c := cleanup{csv: csv, now: now}
		now = now.Add(left.delay(c.unchanged()))
	}
	if looks > 130 {
		t.Errorf("looked %d times in 8 hours", looks)
	}
	fresh := cleanup{csv: kettle(), now: noon()}
	fresh.csv.Status.LastUpdateTime = &metav1.Time{Time: noon().Add(-time.Hour)}
	if got := fresh.unchanged(); got != 0 {
		t.Errorf("a clean-up that has just begun was quiet for %s", got)
	}
}
