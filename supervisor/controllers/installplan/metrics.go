package installplan

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
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
	waitingForApproval = promauto.With(metrics.Registry).NewGaugeVec(prometheus.GaugeOpts{
		Name: "chandlery_installplan_waiting_for_approval",
		Help: "InstallPlans that wait for approval, by namespace.",
	}, []string{"namespace"})
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

// waitingPlans counts the plans of each namespace that wait for approval. A namespace without such
// plans has no series. It is safe for concurrent use; the zero value is ready to use.
type waitingPlans struct {
	mu    sync.Mutex
	names map[string]sets.Set[string] // by namespace
}

// record records whether a plan waits for approval.
func (w *waitingPlans) record(key types.NamespacedName, waits bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.names == nil {
		w.names = map[string]sets.Set[string]{}
	}
	names := w.names[key.Namespace]
	if names.Has(key.Name) == waits {
		return
	}
	if names == nil {
		names = sets.Set[string]{}
		w.names[key.Namespace] = names
	}
	if waits {
		names.Insert(key.Name)
	} else {
		names.Delete(key.Name)
	}
	if names.Len() > 0 {
		waitingForApproval.WithLabelValues(key.Namespace).Set(float64(names.Len()))
		return
	}
	delete(w.names, key.Namespace)
	waitingForApproval.DeleteLabelValues(key.Namespace)
}
