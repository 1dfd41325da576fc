package bundleimage

import (
	"cmp"
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
		Help: "Pulls of bundle images, by result: success, or the reason of the failure.",
	}, []string{"result"})
	pullSeconds = promauto.With(metrics.Registry).NewHistogram(prometheus.HistogramOpts{
		Name:    "chandlery_bundle_pull_duration_seconds",
		Help:    "Time to pull and read a bundle image, successfully or not.",
		Buckets: prometheus.ExponentialBuckets(0.05, 2.5, 10),
	})
	pullsRunning = promauto.With(metrics.Registry).NewGauge(prometheus.GaugeOpts{
		Name: "chandlery_bundle_pulls_running",
		Help: "Pulls of bundle images in progress.",
	})
	nodePullsTotal = promauto.With(metrics.Registry).NewCounterVec(prometheus.CounterOpts{
		Name: "chandlery_bundle_node_pulls_total",
		Help: "Pulls of bundle images by nodes, by result.",
	}, []string{"result"})
	cacheBytes = promauto.With(metrics.Registry).NewGauge(prometheus.GaugeOpts{
		Name: "chandlery_bundle_cache_bytes",
		Help: "Size of the bundle images on disk.",
	})
	cacheImages = promauto.With(metrics.Registry).NewGauge(prometheus.GaugeOpts{
		Name: "chandlery_bundle_cache_images",
		Help: "Bundle images on disk.",
	})
)

// recordPull records a pull in the metrics.
func recordPull(err error, took time.Duration) {
	countPull(err)
	pullSeconds.Observe(took.Seconds())
}

// countPull counts a pull, or an image that its registry did not grant.
func countPull(err error) { pullsTotal.WithLabelValues(resultOf(err)).Inc() }

// recordNodePull records a pull by a node in the metrics.
func recordNodePull(err error) { nodePullsTotal.WithLabelValues(resultOf(err)).Inc() }

// resultOf returns the result of a pull as the value of a label.
func resultOf(err error) string {
	if err == nil {
		return "success"
	}
	return cmp.Or(strings.ToLower(string(image.ReasonOf(err))), "other")
}
