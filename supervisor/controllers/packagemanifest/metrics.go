package packagemanifest

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	certutil "k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/chandlery/chandlery/supervisor/webhook"
)

var (
	packageCount = promauto.With(metrics.Registry).NewGaugeVec(prometheus.GaugeOpts{
		Name: "chandlery_packagemanifests", Help: "Packages of a catalog that the API of PackageManifests serves.",
	}, []string{"namespace", "name"})
	brokenChannels = promauto.With(metrics.Registry).NewGaugeVec(prometheus.GaugeOpts{
		Name: "chandlery_packagemanifests_broken_channels", Help: "Channels of a catalog that PackageManifests do not show because their head cannot be read.",
	}, []string{"namespace", "name"})
	available = promauto.With(metrics.Registry).NewGaugeVec(prometheus.GaugeOpts{
		Name: "chandlery_packagemanifests_available", Help: "1 while the APIService of PackageManifests is available, and 0 while it is not. Only the leader has it, unless there should be no APIService.",
	}, nil)
	certificateExpiry = promauto.With(metrics.Registry).NewGauge(prometheus.GaugeOpts{
		Name: "chandlery_packagemanifests_certificate_expiry_timestamp_seconds", Help: "End of the certificate with which the process serves PackageManifests; 0 without one.",
	})
)

// ResetMetrics deletes the series of all catalogs and of the APIService. Call it when the controllers of a process have
// stopped.
func ResetMetrics() {
	packageCount.Reset()
	brokenChannels.Reset()
	available.Reset()
}

// recordExpiry sets the metric of the serving certificate, which is 0 if it cannot be read.
func recordExpiry(cert []byte) {
	certificateExpiry.Set(0)
	if parsed, err := certutil.ParseCertsPEM(cert); err == nil {
		certificateExpiry.Set(float64(parsed[0].NotAfter.Unix()))
	}
}

// reportAvailability sets the metric of the APIService to its condition. live is nil if there is none. The metric is 0 then if
// the installation wants one, and absent if not.
func reportAvailability(live *unstructured.Unstructured, wanted bool) {
	if live == nil && !wanted {
		available.Reset()
		return
	}
	value := 0.0
	if live != nil {
		if ok, _, _ := webhook.Available(live); ok {
			value = 1
		}
	}
	available.WithLabelValues().Set(value)
}

// record sets the metrics of a catalog that has been read.
func record(key types.NamespacedName, packages, broken int) {
	packageCount.WithLabelValues(key.Namespace, key.Name).Set(float64(packages))
	brokenChannels.WithLabelValues(key.Namespace, key.Name).Set(float64(broken))
}

// forget removes the metrics of a catalog.
func forget(key types.NamespacedName) {
	packageCount.DeleteLabelValues(key.Namespace, key.Name)
	brokenChannels.DeleteLabelValues(key.Namespace, key.Name)
}
