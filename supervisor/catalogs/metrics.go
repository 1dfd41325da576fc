package catalogs

import (
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/chandlery/chandlery/supervisor/catalogs/replicas"
)

var replicaCount = promauto.With(metrics.Registry).NewGaugeVec(prometheus.GaugeOpts{
	Name: "chandlery_catalog_replicas",
	Help: "Replicas of a catalog by their answer: serving, notserving, unreachable or unknown.",
}, []string{"namespace", "name", "state"})

var (
	snapshotBytes = promauto.With(metrics.Registry).NewGaugeVec(prometheus.GaugeOpts{
		Name: "chandlery_catalog_snapshot_bytes",
		Help: "Estimated memory of the snapshot of a catalog. Catalogs of the same content share it.",
	}, []string{"namespace", "name"})
	snapshotCount = promauto.With(metrics.Registry).NewGauge(prometheus.GaugeOpts{
		Name: "chandlery_catalog_snapshots",
		Help: "Snapshots in memory.",
	})
	snapshotTotal = promauto.With(metrics.Registry).NewGauge(prometheus.GaugeOpts{
		Name: "chandlery_catalog_snapshots_bytes",
		Help: "Estimated memory of all snapshots.",
	})
)

// recordReplicas sets the number of replicas of a catalog in each state.
func recordReplicas(key types.NamespacedName, states []replicas.State) {
	counts := map[replicas.Health]int{}
	for _, s := range states {
		counts[s.Health]++
	}
	for _, health := range replicas.Healths() {
		replicaCount.WithLabelValues(key.Namespace, key.Name, strings.ToLower(string(health))).Set(float64(counts[health]))
	}
}

// deleteMetrics deletes the metrics of a catalog.
func deleteMetrics(key types.NamespacedName) {
	replicaCount.DeletePartialMatch(prometheus.Labels{"namespace": key.Namespace, "name": key.Name})
	snapshotBytes.DeleteLabelValues(key.Namespace, key.Name)
}
