package copiedcsv

import (
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// Label names of the metrics of this package.
const (
	labelAction    = "action"
	labelResult    = "result"
	labelNamespace = "namespace"
	labelName      = "name"
)

// actionStatus is the action label for writes of a copy's status, which are part of other actions.
const actionStatus = "status"

// counts holds the metrics of this package.
type counts struct {
	writes  *prometheus.CounterVec
	pending *prometheus.GaugeVec
	blocked *prometheus.GaugeVec
}

// newCounts registers the metrics. It reuses metrics that an earlier manager of the same process
// registered.
func newCounts(registry prometheus.Registerer) (*counts, error) {
	writes, err := register(registry, prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "chandlery_copied_csv_writes_total",
		Help: "Writes of copied ClusterServiceVersions, roles and bindings, by action and result.",
	}, []string{labelAction, labelResult}))
	if err != nil {
		return nil, err
	}
	versions := []string{labelNamespace, labelName}
	pending, err := register(registry, prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "chandlery_copied_csv_pending",
		Help: "Writes that remain until the copies of a ClusterServiceVersion are up to date.",
	}, versions))
	if err != nil {
		return nil, err
	}
	blocked, err := register(registry, prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "chandlery_copied_csv_blocked",
		Help: "Namespaces in which the copy of a ClusterServiceVersion, or a role or binding of it, is blocked.",
	}, versions))
	if err != nil {
		return nil, err
	}
	return &counts{writes: writes, pending: pending, blocked: blocked}, nil
}

// register registers a metric, or returns the one that is already registered.
func register[C prometheus.Collector](registry prometheus.Registerer, metric C) (C, error) {
	err := registry.Register(metric)
	if registered, ok := errors.AsType[prometheus.AlreadyRegisteredError](err); ok {
		if existing, ok := registered.ExistingCollector.(C); ok {
			return existing, nil
		}
	}
	return metric, err
}

// ResetMetrics deletes the series of the copies of all ClusterServiceVersions. Call it when the controllers of a process
// have stopped.
func ResetMetrics() error {
	c, err := newCounts(metrics.Registry)
	if err != nil {
		return fmt.Errorf("resetting the metrics of copied ClusterServiceVersions: %w", err)
	}
	c.reset()
	return nil
}

// reset deletes the series of the copies of all ClusterServiceVersions.
func (c *counts) reset() {
	c.pending.Reset()
	c.blocked.Reset()
}

func (c *counts) countWrite(what string, err error) {
	result := "success"
	if err != nil {
		result = "error"
	}
	c.writes.WithLabelValues(what, result).Inc()
}

func (c *counts) setPending(key types.NamespacedName, pending, blocked int) {
	c.pending.WithLabelValues(key.Namespace, key.Name).Set(float64(pending))
	c.blocked.WithLabelValues(key.Namespace, key.Name).Set(float64(blocked))
}

func (c *counts) forget(key types.NamespacedName) {
	c.pending.DeleteLabelValues(key.Namespace, key.Name)
	c.blocked.DeleteLabelValues(key.Namespace, key.Name)
}
