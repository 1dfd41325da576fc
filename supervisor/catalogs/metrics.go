package catalogs

import (
	"strings"
	"sync"
	"time"

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

var replicasByNode = promauto.With(metrics.Registry).NewGaugeVec(prometheus.GaugeOpts{
	Name: "chandlery_catalog_replicas_by_node",
	Help: "Replicas of a hosted catalog on each node, by their answer: serving, notserving, unreachable or unknown.",
}, []string{"namespace", "name", "node", "zone", "state"})

// snapshotReads has the name and the labels that existing dashboards use.
var snapshotReads = promauto.With(metrics.Registry).NewCounterVec(prometheus.CounterOpts{
	Name: "catalog_source_snapshots_total",
	Help: "Complete readings of the content of a catalog. Standbys and package servers also count.",
}, []string{"namespace", "name"})

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

var clientCertificateExpiry = promauto.With(metrics.Registry).NewGaugeVec(prometheus.GaugeOpts{
	Name: "chandlery_catalog_client_certificate_expiry_timestamp_seconds",
	Help: "End of the client certificate for a catalog at an address. Catalogs without one have no series.",
}, []string{"namespace", "name"})

// recordClientCertificate sets the end of the client certificate for a catalog; zero for none.
func recordClientCertificate(key types.NamespacedName, end time.Time) {
	if end.IsZero() {
		clientCertificateExpiry.DeleteLabelValues(key.Namespace, key.Name)
		return
	}
	clientCertificateExpiry.WithLabelValues(key.Namespace, key.Name).Set(float64(end.Unix()))
}

// placement is the place and the health of replicas.
type placement struct {
	node, zone string
	health     replicas.Health
}

// placements holds the series of replicasByNode of each catalog. It is safe for concurrent use.
var placements sync.Map // of map[placement]int, by types.NamespacedName

// recordReplicas sets the number of replicas of a catalog in each state, in all and on each node.
func recordReplicas(key types.NamespacedName, states []replicas.State) {
	counts, placed := map[replicas.Health]int{}, map[placement]int{}
	for _, s := range states {
		counts[s.Health]++
		if s.Node != "" {
			placed[placement{s.Node, s.Zone, s.Health}]++
		}
	}
	for _, health := range replicas.Healths() {
		replicaCount.WithLabelValues(key.Namespace, key.Name, stateLabel(health)).Set(float64(counts[health]))
	}
	for p, count := range placed {
		replicasByNode.WithLabelValues(key.Namespace, key.Name, p.node, p.zone, stateLabel(p.health)).Set(float64(count))
	}
	previous, _ := placements.Swap(key, placed)
	before, _ := previous.(map[placement]int)
	for p := range before {
		if placed[p] == 0 {
			replicasByNode.DeleteLabelValues(key.Namespace, key.Name, p.node, p.zone, stateLabel(p.health))
		}
	}
}

// stateLabel returns the value of the label state.
func stateLabel(health replicas.Health) string { return strings.ToLower(string(health)) }

// deleteMetrics deletes the metrics of a catalog.
func deleteMetrics(key types.NamespacedName) {
	ofCatalog := prometheus.Labels{"namespace": key.Namespace, "name": key.Name}
	replicaCount.DeletePartialMatch(ofCatalog)
	replicasByNode.DeletePartialMatch(ofCatalog)
	placements.Delete(key)
	snapshotBytes.DeleteLabelValues(key.Namespace, key.Name)
	snapshotReads.DeleteLabelValues(key.Namespace, key.Name)
	clientCertificateExpiry.DeleteLabelValues(key.Namespace, key.Name)
}
