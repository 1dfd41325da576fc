package server

import (
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc/codes"
)

// callMetrics are the metrics of calls, by method.
type callMetrics struct {
	handled  *prometheus.CounterVec
	duration *prometheus.HistogramVec
	inFlight *prometheus.GaugeVec
	sent     *prometheus.CounterVec
}

func newCallMetrics(f family) callMetrics {
	labels := []string{"service", "method"}
	return callMetrics{
		handled: f.factory.NewCounterVec(prometheus.CounterOpts{
			Namespace: metricsNamespace, Subsystem: metricsSubsystem, Name: "requests_total",
			Help: "Completed calls, by status code.",
		}, append(labels, "code")),
		duration: f.factory.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: metricsNamespace, Subsystem: metricsSubsystem, Name: "request_duration_seconds",
			Help:    "Duration of calls.",
			Buckets: []float64{.00001, .0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 10, 60},
		}, labels),
		inFlight: f.factory.NewGaugeVec(prometheus.GaugeOpts{
			Namespace: metricsNamespace, Subsystem: metricsSubsystem, Name: "requests_in_flight",
			Help: "Calls in progress.",
		}, labels),
		sent: f.factory.NewCounterVec(prometheus.CounterOpts{
			Namespace: metricsNamespace, Subsystem: metricsSubsystem, Name: "response_bytes_total",
			Help: "Size of the sent messages before compression.",
		}, labels),
	}
}

// method holds the metrics of one method, so a call does not look them up by labels.
type method struct {
	service, name string
	// watch is set for calls that last as long as the client likes and are mostly idle.
	watch bool

	handled  *prometheus.CounterVec
	byCode   [codes.Unauthenticated + 1]atomic.Pointer[prometheus.Counter]
	duration prometheus.Observer
	inFlight prometheus.Gauge
	sent     prometheus.Counter
}

// watchMethod is the name of the watch methods of all services.
const watchMethod = "Watch"

func (c callMetrics) method(service, name string) *method {
	m := &method{
		service: service, name: name, handled: c.handled, watch: name == watchMethod,
		duration: c.duration.WithLabelValues(service, name),
		inFlight: c.inFlight.WithLabelValues(service, name),
		sent:     c.sent.WithLabelValues(service, name),
	}
	m.counter(codes.OK)
	return m
}

// counter returns the counter of a code. It creates the counter on first use, because most codes
// never occur for most methods.
func (m *method) counter(code codes.Code) prometheus.Counter {
	if int(code) >= len(m.byCode) {
		code = codes.Unknown
	}
	slot := &m.byCode[code]
	if counter := slot.Load(); counter != nil {
		return *counter
	}
	counter := m.handled.WithLabelValues(m.service, m.name, code.String())
	slot.Store(&counter)
	return counter
}

// begin counts a call that begins.
func (m *method) begin() { m.inFlight.Inc() }

// end counts a call that ends.
func (m *method) end(code codes.Code, took time.Duration) {
	m.inFlight.Dec()
	m.counter(code).Inc()
	m.duration.Observe(took.Seconds())
}
