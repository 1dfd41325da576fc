package subscription

import (
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/chandlery/chandlery/supervisor/resolution"
)

// Outcomes of a resolution.
const (
	outcomeSucceeded = "succeeded"
	outcomeFailed    = "failed"
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
	waitingSince = promauto.With(metrics.Registry).NewGaugeVec(prometheus.GaugeOpts{
		Name: "chandlery_subscription_waiting_since_timestamp_seconds",
		Help: "Time since when a Subscription waits. The labels waits_for and reason are a condition and its reason, or ClusterServiceVersion and its reason, or Resolution.",
	}, []string{"namespace", "name", "waits_for", "reason"})
)

// These metrics have the names and the labels that existing dashboards and alerts use.
var (
	//nolint:promlinter // The name is the one in use.
	subscriptionCount = promauto.With(metrics.Registry).NewGauge(prometheus.GaugeOpts{
		Name: "subscription_count",
		Help: "Subscriptions.",
	})
	syncs = promauto.With(metrics.Registry).NewCounterVec(prometheus.CounterOpts{
		Name: "subscription_sync_total",
		Help: "Passes over a Subscription. Subscriptions of different namespaces with the same labels share a series.",
	}, []string{"name", "installed", "channel", "package", "approval"})
	resolutionSummary = promauto.With(metrics.Registry).NewSummaryVec(prometheus.SummaryOpts{
		Name:       "olm_resolution_duration_seconds",
		Help:       "Time to resolve the Subscriptions of a namespace, by outcome: succeeded, or failed for one of them.",
		Objectives: map[float64]float64{0.9: 0.01, 0.95: 0.05, 0.99: 0.001},
	}, []string{"outcome"})
)

// ResetMetrics deletes the series of all Subscriptions. Call it when the controllers of a process have stopped: those of
// its next manager count every Subscription again.
func ResetMetrics() {
	subscriptionCount.Set(0)
	syncs.Reset()
	waitingSince.Reset()
}

// recordResolution records how long a resolution of a namespace took, if it has an outcome.
func recordResolution(took time.Duration, solution resolution.Solution) {
	outcome := outcomeOf(solution)
	if outcome == "" {
		return
	}
	resolutions.Observe(took.Seconds())
	resolutionSummary.WithLabelValues(outcome).Observe(took.Seconds())
}

// outcomeOf returns the outcome of a resolution. It is empty if no Subscription was resolved, or if the result depends on a
// catalog that is being read: the namespace is resolved again then.
func outcomeOf(solution resolution.Solution) string {
	outcome := ""
	for _, result := range solution {
		switch {
		case errors.Is(result.Err, resolution.ErrPending):
			return ""
		case result.Err != nil:
			outcome = outcomeFailed
		case outcome == "":
			outcome = outcomeSucceeded
		}
	}
	return outcome
}
