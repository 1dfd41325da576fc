package failover

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

var (
	failovers = promauto.With(metrics.Registry).NewCounterVec(prometheus.CounterOpts{
		Name: "chandlery_catalog_failovers_total",
		Help: "Marks, removed marks and deletions of catalog replicas, by reason.",
	}, []string{"action", "reason"})
	held = promauto.With(metrics.Registry).NewGaugeVec(prometheus.GaugeOpts{
		Name: "chandlery_catalog_failovers_held",
		Help: "Catalog replicas whose mark or deletion waits, by obstacle.",
	}, []string{"hold"})
)

// ResetMetrics deletes the series of actions that wait. Call it when the controllers of a process have stopped.
func ResetMetrics() { held.Reset() }

// initMetrics initializes every counter with zero. Otherwise, the first failover would not be visible as
// an increase.
func initMetrics() {
	failovers.WithLabelValues(string(MarkNotReady), string(ReplicaUnreachable))
	failovers.WithLabelValues(string(MarkReady), string(ReplicaAnswers))
	for _, reason := range []Reason{NodeNotReady, NodeGone, Disrupted, Failed} {
		failovers.WithLabelValues(string(Delete), string(reason))
	}
}
