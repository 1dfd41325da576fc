package failover

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

var (
	failovers = promauto.With(metrics.Registry).NewCounterVec(prometheus.CounterOpts{
		Name: "chandlery_catalog_failovers_total",
		Help: "Number of times that a replica of a catalog was marked, unmarked or deleted, by the reason.",
	}, []string{"action", "reason"})
	held = promauto.With(metrics.Registry).NewGaugeVec(prometheus.GaugeOpts{
		Name: "chandlery_catalog_failovers_held",
		Help: "Number of replicas of catalogs that would be marked or deleted now, by what holds that up.",
	}, []string{"hold"})
)

// initMetrics initializes every counter with zero. Otherwise, the first failover would not be visible as
// an increase.
func initMetrics() {
	failovers.WithLabelValues(string(MarkNotReady), string(Silent))
	failovers.WithLabelValues(string(MarkReady), string(Back))
	for _, reason := range []Reason{NodeNotReady, NodeGone, Disrupted, Failed} {
		failovers.WithLabelValues(string(Delete), string(reason))
	}
}
