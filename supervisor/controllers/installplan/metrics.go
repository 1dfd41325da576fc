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
		Help: "Number of times that an InstallPlan entered a phase.",
	}, []string{"phase"})
	stepFailures = promauto.With(metrics.Registry).NewCounterVec(prometheus.CounterOpts{
		Name: "chandlery_installplan_step_failures_total",
		Help: "Number of times that a step of an InstallPlan could not be applied, by the kind of its object.",
	}, []string{"kind"})
	acknowledgements = promauto.With(metrics.Registry).NewHistogramVec(prometheus.HistogramOpts{
		Name:    "chandlery_installplan_acknowledgement_seconds",
		Help:    "How long InstallPlans waited before their next phase until their Subscriptions showed the present one, by outcome: shown, or late when they did not in time.",
		Buckets: []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10},
	}, []string{"outcome"})
	// Alerts of existing clusters use this name.
	warnedSteps = promauto.With(metrics.Registry).NewCounter(prometheus.CounterOpts{
		Name: "installplan_warnings_total",
		Help: "Number of steps of InstallPlans about which the API server warned while they were applied.",
	})
	droppedFields = promauto.With(metrics.Registry).NewCounterVec(prometheus.CounterOpts{
		Name: "chandlery_installplan_dropped_fields_total",
		Help: "Number of fields of what bundles bring that the API server did not store because it does not know them, by the kind of the step.",
	}, []string{"kind"})
	collected = promauto.With(metrics.Registry).NewCounter(prometheus.CounterOpts{
		Name: "chandlery_installplan_collected_total",
		Help: "Number of old InstallPlans that were deleted.",
	})
)
