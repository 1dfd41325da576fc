package catalogsource

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// ready and sourceCount have the names and the labels that existing dashboards and alerts use.
var (
	ready = promauto.With(metrics.Registry).NewGaugeVec(prometheus.GaugeOpts{
		Name: "catalogsource_ready",
		Help: "1 if a catalog serves and its content has been read, else 0.",
	}, []string{"namespace", "name"})
	//nolint:promlinter // The name is the one in use.
	sourceCount = promauto.With(metrics.Registry).NewGauge(prometheus.GaugeOpts{
		Name: "catalog_source_count",
		Help: "CatalogSources.",
	})
	wantedReplicas = promauto.With(metrics.Registry).NewGaugeVec(prometheus.GaugeOpts{
		Name: "chandlery_catalog_wanted_replicas",
		Help: "Replicas that the Deployment of a catalog shall have.",
	}, []string{"namespace", "name"})
)

// counted holds the CatalogSources that sourceCount counts, by types.NamespacedName.
var counted sync.Map

// ResetMetrics deletes the series of all CatalogSources. Call it when the controllers of a process have stopped: those of
// its next manager count every CatalogSource again.
func ResetMetrics() {
	counted.Clear()
	sourceCount.Set(0)
	ready.Reset()
	wantedReplicas.Reset()
}

// recordExists counts a CatalogSource once.
func recordExists(key types.NamespacedName) {
	if _, known := counted.LoadOrStore(key, true); !known {
		sourceCount.Inc()
	}
}

func recordReady(key types.NamespacedName, isReady bool) {
	value := 0.0
	if isReady {
		value = 1
	}
	ready.WithLabelValues(key.Namespace, key.Name).Set(value)
}

// recordWanted records the replicas that a Deployment shall have. A catalog without a Deployment has no series.
func recordWanted(key types.NamespacedName, d *appsv1.Deployment) {
	if d == nil || d.Spec.Replicas == nil {
		wantedReplicas.DeleteLabelValues(key.Namespace, key.Name)
		return
	}
	wantedReplicas.WithLabelValues(key.Namespace, key.Name).Set(float64(*d.Spec.Replicas))
}

// deleteMetrics deletes the metrics of a CatalogSource.
func deleteMetrics(key types.NamespacedName) {
	if _, known := counted.LoadAndDelete(key); known {
		sourceCount.Dec()
	}
	ready.DeleteLabelValues(key.Namespace, key.Name)
	wantedReplicas.DeleteLabelValues(key.Namespace, key.Name)
}
