package copiedcsv

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"k8s.io/apimachinery/pkg/types"
)

// TestResetCounts checks that stopped controllers leave no series of versions.
func TestResetCounts(t *testing.T) {
	c, err := newCounts(prometheus.NewPedanticRegistry())
	if err != nil {
		t.Fatal(err)
	}
	c.setPending(types.NamespacedName{Namespace: "kitchen", Name: "kettle.v1"}, 2, 1)
	c.reset()
	if p, b := testutil.CollectAndCount(c.pending), testutil.CollectAndCount(c.blocked); p != 0 || b != 0 {
		t.Errorf("%d and %d series are left", p, b)
	}
}
