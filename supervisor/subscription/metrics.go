package subscription

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

var resolutions = promauto.With(metrics.Registry).NewHistogram(prometheus.HistogramOpts{
	Name:    "chandlery_resolution_duration_seconds",
	Help:    "Time taken to resolve the Subscriptions of a namespace.",
	Buckets: prometheus.ExponentialBuckets(0.0001, 4, 8),
})
