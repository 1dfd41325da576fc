package clusterserviceversion

import (
	"errors"
	"fmt"
	"sync"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/chandlery/chandlery/supervisor/controllers/clusterserviceversion/phase"
)

// Label names of the metrics of this package.
const (
	labelNamespace = "namespace"
	labelName      = "name"
	labelVersion   = "version"
	labelPhase     = "phase"
	labelReason    = "reason"
)

// gauges holds the metrics of this package. Alerts and dashboards in clusters already use their
// names.
type gauges struct {
	count     prometheus.Gauge
	upgrades  prometheus.Counter
	succeeded *prometheus.GaugeVec
	abnormal  *prometheus.GaugeVec
	// shown holds the series of each ClusterServiceVersion by its types.NamespacedName: a vector
	// cannot be queried without reading all of it.
	shown *sync.Map
}

// series holds the labels that change while a ClusterServiceVersion exists.
type series struct {
	version string
	phase   operatorsv1alpha1.ClusterServiceVersionPhase
	reason  operatorsv1alpha1.ConditionReason
}

// newGauges registers the metrics, or returns those that an earlier manager of the same process
// registered.
func newGauges(registry prometheus.Registerer) (gauges, error) {
	//nolint:promlinter // The name is the one in use.
	count, err := register(registry, prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "csv_count",
		Help: "ClusterServiceVersions. Copies do not count.",
	}))
	if err != nil {
		return gauges{}, err
	}
	//nolint:promlinter // The name is the one in use.
	upgrades, err := register(registry, prometheus.NewCounter(prometheus.CounterOpts{
		Name: "csv_upgrade_count",
		Help: "Replacements of ClusterServiceVersions that began.",
	}))
	if err != nil {
		return gauges{}, err
	}
	succeeded, err := register(registry, prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "csv_succeeded",
		Help: "1 if a ClusterServiceVersion is in phase Succeeded, else 0.",
	}, []string{labelNamespace, labelName, labelVersion}))
	if err != nil {
		return gauges{}, err
	}
	abnormal, err := register(registry, prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "csv_abnormal",
		Help: "1 while a ClusterServiceVersion is in another phase than Succeeded, or waits for its clean-up.",
	}, []string{labelNamespace, labelName, labelVersion, labelPhase, labelReason}))
	if err != nil {
		return gauges{}, err
	}
	return gauges{count: count, upgrades: upgrades, succeeded: succeeded, abnormal: abnormal, shown: &sync.Map{}}, nil
}

func register[C prometheus.Collector](registry prometheus.Registerer, c C) (C, error) {
	err := registry.Register(c)
	if registered, ok := errors.AsType[prometheus.AlreadyRegisteredError](err); ok {
		if existing, ok := registered.ExistingCollector.(C); ok {
			return existing, nil
		}
	}
	return c, err
}

// ResetMetrics deletes the series of all ClusterServiceVersions. Call it when the controllers of a process have stopped:
// those of its next manager count every ClusterServiceVersion again.
func ResetMetrics() error {
	g, err := newGauges(metrics.Registry)
	if err != nil {
		return fmt.Errorf("resetting the metrics of ClusterServiceVersions: %w", err)
	}
	g.reset()
	return nil
}

// reset deletes the series of all ClusterServiceVersions.
func (g gauges) reset() {
	g.shown.Clear()
	g.count.Set(0)
	g.succeeded.Reset()
	g.abnormal.Reset()
}

// record sets the series of the current phase of a ClusterServiceVersion and removes those of
// earlier phases. It sets the new series before it deletes the old ones, so that no scrape misses
// the object. It changes only series that differ.
func (g gauges) record(csv *operatorsv1alpha1.ClusterServiceVersion, t phase.Transition) {
	now := series{version: csv.Spec.Version.String(), phase: t.Phase, reason: t.Reason}
	healthy := t.Phase == operatorsv1alpha1.CSVPhaseSucceeded && t.Reason != operatorsv1alpha1.CSVReasonWaitingForCleanupToComplete
	value := 0.0
	if healthy {
		value = 1
	}
	g.succeeded.WithLabelValues(csv.Namespace, csv.Name, now.version).Set(value)
	if !healthy {
		g.abnormal.WithLabelValues(csv.Namespace, csv.Name, now.version, string(now.phase), string(now.reason)).Set(1)
	}
	previous, _ := g.shown.Swap(types.NamespacedName{Namespace: csv.Namespace, Name: csv.Name}, now)
	before, known := previous.(series)
	if !known {
		g.count.Inc()
	}
	if !known || before == now {
		return
	}
	if before.version != now.version {
		g.succeeded.DeleteLabelValues(csv.Namespace, csv.Name, before.version)
	}
	g.abnormal.DeleteLabelValues(csv.Namespace, csv.Name, before.version, string(before.phase), string(before.reason))
}

// countReplacement counts a ClusterServiceVersion that begins to be replaced.
func (g gauges) countReplacement(from, to operatorsv1alpha1.ClusterServiceVersionPhase) {
	if from != to && to == operatorsv1alpha1.CSVPhaseReplacing {
		g.upgrades.Inc()
	}
}

// forget drops the series of a ClusterServiceVersion.
func (g gauges) forget(csv types.NamespacedName) {
	if _, known := g.shown.LoadAndDelete(csv); !known {
		return
	}
	g.count.Dec()
	labels := prometheus.Labels{labelNamespace: csv.Namespace, labelName: csv.Name}
	g.succeeded.DeletePartialMatch(labels)
	g.abnormal.DeletePartialMatch(labels)
}
