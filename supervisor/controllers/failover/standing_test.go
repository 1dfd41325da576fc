package failover

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

// TestStandings decides on two catalogs with a failing replica each. One replica is on a node that
// is not ready. The other one has just stopped answering on a ready node.
func TestStandings(t *testing.T) {
	o := Observation{
		Now: now, Limits: Limits{Rate: 10, Burst: 50},
		Catalogs: []Catalog{
			shop("a", pod("a1", "lost"), pod("a2", "here")),
			shop("b", pod("b1", "quiet", silent), pod("b2", "here")),
		},
		Nodes: map[string]Node{"lost": away(), "quiet": ready(), "here": ready()},
	}
	for _, tt := range []struct {
		standing Standing
		want     []string
	}{
		{Waiting, nil},
		{Deputising, []string{"mark b1 ReplicaUnreachable"}},
		{Leading, []string{"delete a1 NodeNotReady", "mark b1 ReplicaUnreachable"}},
	} {
		o.Standing = tt.standing
		if diff := cmp.Diff(tt.want, Decide(o).done()); diff != "" {
			t.Errorf("standing %d (-want +got)\n%s", tt.standing, diff)
		}
	}
	if o.Nodes["lost"].Ready != corev1.ConditionUnknown {
		t.Error("the observation was changed")
	}
}

// TestMarksDoNotWaitForDeletions has more pods to delete than tokens.
func TestMarksDoNotWaitForDeletions(t *testing.T) {
	for _, standing := range []Standing{Deputising, Leading} {
		o := Observation{Now: now, Standing: standing, Limits: Limits{Rate: 1, Burst: 2}, Nodes: map[string]Node{"a": ready(), "b": ready()}}
		for i := range 60 {
			name := fmt.Sprintf("a%02d", i)
			o.Catalogs = append(o.Catalogs, shop(name, pod(name, "a", failed, notReady)))
		}
		o.Catalogs = append(o.Catalogs, shop("b", pod("lost", "a", silent), pod("good", "b")))
		if d := Decide(o); !slices.Contains(d.done(), "mark lost ReplicaUnreachable") {
			t.Errorf("standing %d: the silent replica is not marked: %v", standing, d.done())
		}
	}
}

func TestWatch(t *testing.T) {
	for seconds, want := range map[int]time.Duration{1: watchful, 60: watchful, 61: relaxed} {
		if got := watch(now, ago(seconds)); got != want {
			t.Errorf("silent for %d s: looks after %s, want %s", seconds, got, want)
		}
	}
}
