package bundleimage

import (
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/chandlery/chandlery/bundles/image"
)

var (
	pullsTotal = promauto.With(metrics.Registry).NewCounterVec(prometheus.CounterOpts{
		Name: "chandlery_bundle_pulls_total",
		Help: "Bundle images that were brought here, by result: success, or the kind of trouble.",
	}, []string{"result"})
	pullSeconds = promauto.With(metrics.Registry).NewHistogram(prometheus.HistogramOpts{
		Name:    "chandlery_bundle_pull_duration_seconds",
		Help:    "Time taken to bring a bundle image here and read it, successfully or not.",
		Buckets: prometheus.ExponentialBuckets(0.05, 2.5, 10),
	})
	pullsRunning = promauto.With(metrics.Registry).NewGauge(prometheus.GaugeOpts{
		Name: "chandlery_bundle_pulls_running",
		Help: "Bundle images that are being brought here.",
	})
	cacheBytes = promauto.With(metrics.Registry).NewGauge(prometheus.GaugeOpts{
		Name: "chandlery_bundle_cache_bytes",
		Help: "Size of the bundle images that are kept on disk.",
	})
	cacheImages = promauto.With(metrics.Registry).NewGauge(prometheus.GaugeOpts{
		Name: "chandlery_bundle_cache_images",
		Help: "Number of bundle images that are kept on disk.",
	})
)

// recordPull records a pull in the metrics.
func recordPull(err error, took time.Duration) {
	result := "success"
	if err != nil {
		result = strings.ToLower(string(image.ReasonOf(err)))
	}
	if result == "" {
		result = "other"
	}
	pullsTotal.WithLabelValues(result).Inc()
	pullSeconds.Observe(took.Seconds())
}
