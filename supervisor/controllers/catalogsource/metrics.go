package catalogsource

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// ready has the name and the labels that existing dashboards and alerts use.
var ready = promauto.With(metrics.Registry).NewGaugeVec(prometheus.GaugeOpts{
	Name: "catalogsource_ready",
	Help: "1 if a catalog serves and its content has been read, else 0.",
}, []string{"namespace", "name"})

func recordReady(key types.NamespacedName, isReady bool) {
	value := 0.0
	if isReady {
		value = 1
	}
	ready.WithLabelValues(key.Namespace, key.Name).Set(value)
}

func forgetReady(key types.NamespacedName) { ready.DeleteLabelValues(key.Namespace, key.Name) }
