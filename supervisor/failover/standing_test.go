package failover

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

// TestAllowed decides on a lost node with a replica of two catalogs, one of which
// the API knows to be away and one that just fell silent.
func TestAllowed(t *testing.T) {
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
		if diff := cmp.Diff(tt.want, tt.standing.allowed(Decide(o)).done()); diff != "" {
			t.Errorf("standing %d (-want +got)\n%s", tt.standing, diff)
		}
	}
	if o.Nodes["lost"].Ready != corev1.ConditionUnknown {
		t.Error("the observation was changed")
	}
}
