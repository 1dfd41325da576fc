package server

import (
	"runtime"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/chandlery/chandlery/bundles/index"
)

const (
	metricsNamespace = "chandlery"
	metricsSubsystem = "registry"
	// labelResult is "success" or "failure".
	labelResult   = "result"
	resultSuccess = "success"
	resultFailure = "failure"
)

// metrics are the metrics of a server. Each server has its own Prometheus registry, so one process
// may have several servers.
type metrics struct {
	registry *prometheus.Registry

	requests callMetrics
	panics   prometheus.Counter
	limited  prometheus.Counter
	stalled  prometheus.Counter

	connections          prometheus.Gauge
	connectionsRefused   prometheus.Counter
	connectionsDisplaced prometheus.Counter

	certificateLoads  *prometheus.CounterVec
	certificateExpiry prometheus.Gauge

	packages     prometheus.Gauge
	channels     prometheus.Gauge
	bundles      prometheus.Gauge
	entries      prometheus.Gauge
	size         prometheus.Gauge
	loads        *prometheus.CounterVec
	loadDuration prometheus.Histogram
	lastLoad     prometheus.Gauge
	problems     prometheus.Gauge
}

func newMetrics(version, commit string) *metrics {
	m := &metrics{registry: prometheus.NewRegistry()}
	f := family{promauto.With(m.registry)}
	m.requests = newCallMetrics(f)
	m.addServer(f)
	m.addCatalog(f)
	build := f.factory.NewGauge(prometheus.GaugeOpts{
		Namespace: metricsNamespace, Subsystem: metricsSubsystem, Name: "build_info",
		Help:        "Always 1. The labels show the running build.",
		ConstLabels: prometheus.Labels{"version": version, "commit": commit, "goversion": runtime.Version()},
	})
	build.Set(1)
	m.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

func (m *metrics) addServer(f family) {
	m.panics = f.counter("panics_total", "Calls that ended in a panic.")
	m.limited = f.counter("rate_limited_requests_total", "Calls refused because their client makes too many.")
	m.stalled = f.counter("stalled_connections_total", "Connections closed because the client did not read.")
	m.connections = f.gauge("connections", "Open connections.")
	m.connectionsRefused = f.counter("refused_connections_total", "Connections that found no room, and were closed after some seconds at most.")
	m.connectionsDisplaced = f.counter("displaced_connections_total", "Connections closed to make room for new ones.")
	m.certificateLoads = f.results("certificate_loads_total", "Attempts to load the TLS certificate, by result.")
	m.certificateExpiry = f.gauge("certificate_expiry_timestamp_seconds", "End of the TLS certificate; 0 without TLS.")
}

func (m *metrics) addCatalog(f family) {
	m.packages = f.gauge("catalog_packages", "Packages of the served content.")
	m.channels = f.gauge("catalog_channels", "Channels of the served content.")
	m.bundles = f.gauge("catalog_bundles", "Bundles of the served content.")
	m.entries = f.gauge("catalog_entries", "Channel entries of the served content. A bundle has one in each of its channels.")
	m.size = f.gauge("catalog_bytes", "Size of the served index.")
	m.loads = f.results("catalog_loads_total", "Attempts to load content, by result.")
	m.loadDuration = f.factory.NewHistogram(prometheus.HistogramOpts{
		Namespace: metricsNamespace, Subsystem: metricsSubsystem, Name: "catalog_load_duration_seconds",
		Help:    "Time to load the served content.",
		Buckets: prometheus.ExponentialBuckets(0.01, 2, 14),
	})
	m.lastLoad = f.gauge("catalog_last_load_success_timestamp_seconds",
		"Time when the served content was loaded.")
	m.problems = f.gauge("catalog_problems", "Problems that prevent serving the present content of the source.")
}

// family creates metrics whose names have the same prefix.
type family struct{ factory promauto.Factory }

func (f family) gauge(name, help string) prometheus.Gauge {
	return f.factory.NewGauge(prometheus.GaugeOpts{Namespace: metricsNamespace, Subsystem: metricsSubsystem, Name: name, Help: help})
}

func (f family) counter(name, help string) prometheus.Counter {
	return f.factory.NewCounter(prometheus.CounterOpts{Namespace: metricsNamespace, Subsystem: metricsSubsystem, Name: name, Help: help})
}

// results creates a counter of successes and failures.
func (f family) results(name, help string) *prometheus.CounterVec {
	vec := f.factory.NewCounterVec(prometheus.CounterOpts{
		Namespace: metricsNamespace, Subsystem: metricsSubsystem, Name: name, Help: help,
	}, []string{labelResult})
	vec.WithLabelValues(resultSuccess)
	vec.WithLabelValues(resultFailure)
	return vec
}

// loaded records content that is now served.
func (m *metrics) loaded(stats index.Stats, took time.Duration, now time.Time) {
	m.packages.Set(float64(stats.Packages))
	m.channels.Set(float64(stats.Channels))
	m.bundles.Set(float64(stats.Bundles))
	m.entries.Set(float64(stats.Entries))
	m.size.Set(float64(stats.Bytes))
	m.loads.WithLabelValues(resultSuccess).Inc()
	m.loadDuration.Observe(took.Seconds())
	m.lastLoad.Set(float64(now.UnixNano()) / float64(time.Second))
	m.problems.Set(0)
}

// failed records content that cannot be served.
func (m *metrics) failed(problems int) {
	m.loads.WithLabelValues(resultFailure).Inc()
	m.problems.Set(float64(problems))
}
