package server

import (
	"runtime"
	"time"

	grpcprometheus "github.com/grpc-ecosystem/go-grpc-middleware/providers/prometheus"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

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

// metrics are the numbers that the server tells about itself. Each server has
// its own registry, so that several can live in one process.
type metrics struct {
	registry     *prometheus.Registry
	grpc         *grpcprometheus.ServerMetrics
	panics       prometheus.Counter
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
	gauge := func(name, help string) prometheus.Gauge {
		return prometheus.NewGauge(prometheus.GaugeOpts{
			Namespace: metricsNamespace, Subsystem: metricsSubsystem, Name: name, Help: help,
		})
	}
	m := &metrics{
		registry: prometheus.NewRegistry(),
		grpc: grpcprometheus.NewServerMetrics(
			grpcprometheus.WithServerCounterOptions(
				grpcprometheus.WithNamespace(metricsNamespace), grpcprometheus.WithSubsystem(metricsSubsystem)),
			grpcprometheus.WithServerHandlingTimeHistogram(
				grpcprometheus.WithHistogramNamespace(metricsNamespace), grpcprometheus.WithHistogramSubsystem(metricsSubsystem)),
		),
		panics: prometheus.NewCounter(prometheus.CounterOpts{
			Namespace: metricsNamespace, Subsystem: metricsSubsystem, Name: "panics_total",
			Help: "Calls that ended in a panic.",
		}),
		packages: gauge("catalog_packages", "Packages of the content that is served."),
		channels: gauge("catalog_channels", "Channels of the content that is served."),
		bundles:  gauge("catalog_bundles", "Bundles of the content that is served."),
		entries:  gauge("catalog_entries", "Channel entries of the content that is served; a bundle has one in each of its channels."),
		size:     gauge("catalog_bytes", "Size of the encoded answers that are held in memory."),
		loads: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: metricsNamespace, Subsystem: metricsSubsystem, Name: "catalog_loads_total",
			Help: "Attempts to load content, by result.",
		}, []string{labelResult}),
		loadDuration: prometheus.NewHistogram(prometheus.HistogramOpts{
			Namespace: metricsNamespace, Subsystem: metricsSubsystem, Name: "catalog_load_duration_seconds",
			Help:    "Time it took to load content that is served.",
			Buckets: prometheus.ExponentialBuckets(0.01, 2, 14),
		}),
		lastLoad: gauge("catalog_last_load_success_timestamp_seconds", "When the content that is served was loaded."),
		problems: gauge("catalog_problems", "Problems that keep the present content of the source from being served."),
	}
	m.loads.WithLabelValues(resultSuccess)
	m.loads.WithLabelValues(resultFailure)
	build := prometheus.NewGauge(prometheus.GaugeOpts{
		Namespace: metricsNamespace, Subsystem: metricsSubsystem, Name: "build_info",
		Help:        "Always 1; the labels say what is running.",
		ConstLabels: prometheus.Labels{"version": version, "commit": commit, "goversion": runtime.Version()},
	})
	build.Set(1)
	m.registry.MustRegister(
		m.grpc, m.panics, m.packages, m.channels, m.bundles, m.entries, m.size, m.loads, m.loadDuration, m.lastLoad,
		m.problems, build, collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	return m
}

// loaded records content that is served from now on.
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
