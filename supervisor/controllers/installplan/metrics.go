package installplan

import (
	"sync"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/chandlery/chandlery/supervisor/plansteps"
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
	waitingSince = promauto.With(metrics.Registry).NewGaugeVec(prometheus.GaugeOpts{
		Name: "chandlery_installplan_waiting_since_timestamp_seconds",
		Help: "Creation time of an InstallPlan that waits for approval.",
	}, []string{"namespace", "name"})
	//nolint:promlinter // Dashboards of existing clusters use this name.
	planCount = promauto.With(metrics.Registry).NewGauge(prometheus.GaugeOpts{
		Name: "install_plan_count",
		Help: "InstallPlans.",
	})
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
		Help: "Steps of InstallPlans that the API server answered with warnings. A step counts once.",
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

// initMetrics initializes the counters of alerts with zero, for the kinds that bundles may contain. Otherwise, the first
// failure would not be visible as an increase.
func initMetrics(kinds plansteps.Kinds) {
	acknowledgements.WithLabelValues(outcomeShown)
	acknowledgements.WithLabelValues(outcomeLate)
	for _, kind := range kinds.StepKinds() {
		stepFailures.WithLabelValues(kind)
	}
}

// ResetMetrics deletes the series of all InstallPlans. Call it when the controllers of a process have stopped: those of
// its next manager count every InstallPlan again.
func ResetMetrics() {
	planCount.Set(0)
	waitingForApproval.Reset()
	waitingSince.Reset()
}

// planSeries holds which plans the gauges count. It is safe for concurrent use; the zero value is ready
// to use.
type planSeries struct {
	mu sync.Mutex
	// waiting holds the names of the plans that wait for approval, by namespace. A namespace without
	// such plans has no series.
	waiting map[string]sets.Set[string]
	known   sets.Set[types.NamespacedName]
}

// record records that a plan exists, and whether it waits for approval.
func (s *planSeries) record(p *operatorsv1alpha1.InstallPlan) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := types.NamespacedName{Namespace: p.Namespace, Name: p.Name}
	if s.known == nil {
		s.waiting, s.known = map[string]sets.Set[string]{}, sets.Set[types.NamespacedName]{}
	}
	s.known.Insert(key)
	planCount.Set(float64(s.known.Len()))
	s.setWaiting(key, waitsForApproval(p), p.CreationTimestamp.Time)
}

// forget deletes the series of a plan that does not exist anymore.
func (s *planSeries) forget(key types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.known.Delete(key)
	planCount.Set(float64(s.known.Len()))
	s.setWaiting(key, false, time.Time{})
}

// setWaiting updates the series about approval. The caller holds the lock.
func (s *planSeries) setWaiting(key types.NamespacedName, waits bool, created time.Time) {
	names := s.waiting[key.Namespace]
	if names.Has(key.Name) == waits {
		return
	}
	if names == nil {
		names = sets.Set[string]{}
		s.waiting[key.Namespace] = names
	}
	if waits {
		names.Insert(key.Name)
		waitingSince.WithLabelValues(key.Namespace, key.Name).Set(float64(created.Unix()))
	} else {
		names.Delete(key.Name)
		waitingSince.DeleteLabelValues(key.Namespace, key.Name)
	}
	if names.Len() > 0 {
		waitingForApproval.WithLabelValues(key.Namespace).Set(float64(names.Len()))
		return
	}
	delete(s.waiting, key.Namespace)
	waitingForApproval.DeleteLabelValues(key.Namespace)
}
