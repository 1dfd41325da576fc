package installplan

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// Outcomes of waiting for Subscriptions.
const (
	outcomeShown = "shown"
	outcomeLate  = "late"
)

var (
	transitions = promauto.With(metrics.Registry).NewCounterVec(prometheus.CounterOpts{
		Name: "chandlery_installplan_phase_transitions_total",
		Help: "Phases that InstallPlans entered.",
	}, []string{"phase"})
	stepFailures = promauto.With(metrics.Registry).NewCounterVec(prometheus.CounterOpts{
		Name: "chandlery_installplan_step_failures_total",
		Help: "Failed attempts to apply a step of an InstallPlan, by kind.",
	}, []string{"kind"})
	acknowledgements = promauto.With(metrics.Registry).NewHistogramVec(prometheus.HistogramOpts{
		Name:    "chandlery_installplan_acknowledgement_seconds",
		Help:    "Time that InstallPlans waited for their Subscriptions to show a phase, by outcome: shown, or late.",
		Buckets: []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10},
	}, []string{"outcome"})
	// Alerts of existing clusters use this name.
	warnedSteps = promauto.With(metrics.Registry).NewCounter(prometheus.CounterOpts{
		Name: "installplan_warnings_total",
		Help: "Steps of InstallPlans with a warning of the API server.",
	})
	droppedFields = promauto.With(metrics.Registry).NewCounterVec(prometheus.CounterOpts{
		Name: "chandlery_installplan_dropped_fields_total",
		Help: "Unknown fields in objects of bundles, which the API server did not store, by kind.",
	}, []string{"kind"})
	deletedPlans = promauto.With(metrics.Registry).NewCounter(prometheus.CounterOpts{
		Name: "chandlery_installplan_collected_total",
		Help: "Old InstallPlans that were deleted.",
	})
)
