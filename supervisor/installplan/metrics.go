package installplan

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
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
)
