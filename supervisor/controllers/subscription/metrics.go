package subscription

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

var (
	resolutions = promauto.With(metrics.Registry).NewHistogram(prometheus.HistogramOpts{
		Name:    "chandlery_resolution_duration_seconds",
		Help:    "Time to resolve the Subscriptions of a namespace.",
		Buckets: prometheus.ExponentialBuckets(0.0001, 4, 8),
	})
	transitions = promauto.With(metrics.Registry).NewCounterVec(prometheus.CounterOpts{
		Name: "chandlery_subscription_transitions_total",
		Help: "Transitions of InstallPlans that Subscriptions showed, by phase, and whether the plan was still in it (live) or not (afterwards).",
	}, []string{"phase", "observed"})
	acknowledgements = promauto.With(metrics.Registry).NewHistogram(prometheus.HistogramOpts{
		Name:    "chandlery_subscription_acknowledgement_delay_seconds",
		Help:    "Time from the observation of a phase of an InstallPlan until its Subscription showed it.",
		Buckets: prometheus.ExponentialBuckets(0.001, 4, 8),
	})
)
