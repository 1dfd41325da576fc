package catalogs

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chandlery/chandlery/supervisor/catalogs/replicas"
)

// TestReplicasByNode records the replicas of a catalog while they move, and compares the series after each step.
func TestReplicasByNode(t *testing.T) {
	key := types.NamespacedName{Namespace: "metrics", Name: "moving"}
	on := func(node, zone string, health replicas.Health) replicas.State {
		return replicas.State{Endpoint: replicas.Endpoint{Node: node, Zone: zone}, Health: health}
	}
	for _, step := range []struct {
		reason string
		states []replicas.State
		want   []string
	}{
		{
			"two nodes",
			[]replicas.State{on("a", "north", replicas.Serving), on("b", "south", replicas.Serving)},
			[]string{`node="a",state="serving",zone="north"} 1`, `node="b",state="serving",zone="south"} 1`},
		},
		{
			"a node is lost, and its replica moves",
			[]replicas.State{on("a", "north", replicas.Unreachable), on("b", "south", replicas.Serving), on("b", "south", replicas.Serving)},
			[]string{`node="a",state="unreachable",zone="north"} 1`, `node="b",state="serving",zone="south"} 2`},
		},
		{"the replica of an address has no node", []replicas.State{{Health: replicas.Serving}}, nil},
	} {
		recordReplicas(key, step.states)
		var expected strings.Builder
		if len(step.want) > 0 {
			expected.WriteString("# HELP chandlery_catalog_replicas_by_node Replicas of a hosted catalog on each node, by their answer: serving, notserving, unreachable or unknown.\n" +
				"# TYPE chandlery_catalog_replicas_by_node gauge\n")
		}
		for _, line := range step.want {
			expected.WriteString(`chandlery_catalog_replicas_by_node{name="moving",namespace="metrics",` + line + "\n")
		}
		if err := testutil.CollectAndCompare(replicasByNode, strings.NewReader(expected.String())); err != nil {
			t.Errorf("%s: %v", step.reason, err)
		}
	}
	recordReplicas(key, []replicas.State{on("a", "", replicas.Serving)})
	deleteMetrics(key)
	if got := testutil.CollectAndCount(replicasByNode); got != 0 {
		t.Errorf("%d series are left of a deleted catalog", got)
	}
	if _, left := placements.Load(key); left {
		t.Error("the places of a deleted catalog are left")
	}
}
