package failover

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

// TestRoles decides on two catalogs with a failing replica each. One replica is on a node that
// is not ready. The other one has just stopped answering on a ready node.
func TestRoles(t *testing.T) {
	o := Input{
		Now: now, Limits: Limits{Rate: 10, Burst: 50},
		Catalogs: []Catalog{
			shop("a", pod("a1", "lost"), pod("a2", "here")),
			shop("b", pod("b1", "quiet", unreachable), pod("b2", "here")),
		},
		Nodes: map[string]Node{"lost": away(), "quiet": ready(), "here": ready()},
	}
	for _, tt := range []struct {
		role Role
		want []string
	}{
		{Standby, nil},
		{LeaderlessStandby, []string{"mark b1 ReplicaUnreachable"}},
		{Leader, []string{"delete a1 NodeNotReady", "mark b1 ReplicaUnreachable"}},
	} {
		o.Role = tt.role
		if diff := cmp.Diff(tt.want, Decide(o).done()); diff != "" {
			t.Errorf("role %d (-want +got)\n%s", tt.role, diff)
		}
	}
	if o.Nodes["lost"].Ready != corev1.ConditionUnknown {
		t.Error("the observation was changed")
	}
}

// TestMarksDoNotWaitForDeletions has more pods to delete than tokens.
func TestMarksDoNotWaitForDeletions(t *testing.T) {
	for _, role := range []Role{LeaderlessStandby, Leader} {
		o := Input{Now: now, Role: role, Limits: Limits{Rate: 1, Burst: 2}, Nodes: map[string]Node{"a": ready(), "b": ready()}}
		for i := range 60 {
			name := fmt.Sprintf("a%02d", i)
			o.Catalogs = append(o.Catalogs, shop(name, pod(name, "a", failed, notReady)))
		}
		o.Catalogs = append(o.Catalogs, shop("b", pod("lost", "a", unreachable), pod("good", "b")))
		if d := Decide(o); !slices.Contains(d.done(), "mark lost ReplicaUnreachable") {
			t.Errorf("role %d: the unreachable replica is not marked: %v", role, d.done())
		}
	}
}

func TestNextCheck(t *testing.T) {
	for seconds, want := range map[int]time.Duration{1: checkInterval, 60: checkInterval, 61: slowCheckInterval} {
		if got := nextCheck(now, ago(seconds)); got != want {
			t.Errorf("unreachable for %d s: checks after %s, want %s", seconds, got, want)
		}
	}
}
