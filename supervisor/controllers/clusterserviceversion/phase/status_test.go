package phase

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
)

func TestStatus(t *testing.T) {
	first := Status(operatorsv1alpha1.ClusterServiceVersionStatus{}, Transition{Phase: pending, Reason: "A", Message: "a"}, Input{Now: noon()})
	if first.Phase != pending || len(first.Conditions) != 1 || !first.LastTransitionTime.Time.Equal(noon()) {
		t.Fatalf("first status = %+v", first)
	}
	same := Status(first, Transition{Phase: pending, Reason: "A", Message: "a"}, Input{Now: noon().Add(time.Hour)})
	if diff := cmp.Diff(first, same); diff != "" {
		t.Errorf("an unchanged status was changed:\n%s", diff)
	}
	reworded := Status(first, Transition{Phase: pending, Reason: "B", Message: "b"}, Input{Now: noon().Add(time.Hour)})
	if !reworded.LastTransitionTime.Time.Equal(noon()) || !reworded.LastUpdateTime.Time.Equal(noon().Add(time.Hour)) || len(reworded.Conditions) != 2 {
		t.Errorf("another reason in the same phase: %+v, want the time of transition kept and the time of update moved", reworded)
	}
	needs := Requirements{Statuses: []operatorsv1alpha1.RequirementStatus{{Name: "x"}}}
	needing := Status(first, Transition{Phase: pending, Reason: "A", Message: "a"}, Input{Requirements: needs, Now: noon().Add(time.Minute)})
	if len(needing.RequirementStatus) != 1 || len(needing.Conditions) != 1 || !needing.LastUpdateTime.Time.Equal(noon().Add(time.Minute)) {
		t.Errorf("new evidence: %+v, want it written without a new condition", needing)
	}
}

func TestHistoryIsBounded(t *testing.T) {
	var s operatorsv1alpha1.ClusterServiceVersionStatus
	for i := range 100 {
		phase := pending
		if i%2 == 0 {
			phase = broken
		}
		s = Status(s, Transition{Phase: phase, Reason: "R", Message: "m"}, Input{Now: noon().Add(time.Duration(i) * time.Second)})
	}
	if len(s.Conditions) != 20 || s.Conditions[19].Phase != s.Phase {
		t.Errorf("history has %d entries, the last %s; want 20, the last %s", len(s.Conditions), s.Conditions[19].Phase, s.Phase)
	}
}
