package testenv

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"

	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// Manager is a manager with a context that ends when the manager stops.
type Manager struct {
	ctrl.Manager

	Context context.Context
}

// StartManager runs a manager, with the controllers that setup adds, until the end of the test, or until stop is
// called. stop waits for its end.
func (w *World) StartManager(o ctrl.Options, setup func(Manager) error) (stop func()) {
	w.T.Helper()
	cfg := rest.CopyConfig(w.Config)
	cfg.Wrap(w.Requests.Record)
	o.Scheme = w.Scheme()
	o.Metrics = metricsserver.Options{BindAddress: "0"}
	o.Controller.SkipNameValidation = new(true)
	mgr, err := ctrl.NewManager(cfg, o)
	if err != nil {
		w.T.Fatalf("making a manager: %v", err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(w.T.Context()))
	w.T.Cleanup(cancel)
	if err := setup(Manager{mgr, ctx}); err != nil {
		w.T.Fatalf("setting up a manager: %v", err)
	}
	return w.start(func() error { return mgr.Start(ctx) }, cancel)
}

// Run runs a supervisor or the like until the end of the test, or until stop is called. stop waits for its end.
func (w *World) Run(run func(context.Context) error) (stop func()) {
	w.T.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(w.T.Context()))
	return w.start(func() error { return run(ctx) }, cancel)
}

func (w *World) start(run func() error, cancel context.CancelFunc) (stop func()) {
	ended := make(chan error, 1)
	go func() { ended <- run() }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			w.T.Errorf("the manager or supervisor ended with: %v", err)
		}
	})
	w.T.Cleanup(stop)
	return stop
}

// Requests records the requests of clients, as method and path.
type Requests struct {
	mu            sync.Mutex
	reads, writes []string
}

// Reads returns the requests that change nothing, and for which all conditions hold.
func (r *Requests) Reads(conditions ...func(request string) bool) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return which(r.reads, conditions)
}

// Writes returns the requests that change objects, and for which all conditions hold.
func (r *Requests) Writes(conditions ...func(request string) bool) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return which(r.writes, conditions)
}

func which(requests []string, conditions []func(string) bool) []string {
	return slices.DeleteFunc(slices.Clone(requests), func(request string) bool {
		return slices.ContainsFunc(conditions, func(holds func(string) bool) bool { return !holds(request) })
	})
}

// WithoutEvents reports whether a request is not about an Event.
func WithoutEvents(request string) bool { return !strings.Contains(request, "/events") }

// Containing returns a condition that requests hold that contain a text.
func Containing(text string) func(request string) bool {
	return func(request string) bool { return strings.Contains(request, text) }
}

// Record returns a transport that records requests, and sends them through another one.
func (r *Requests) Record(next http.RoundTripper) http.RoundTripper {
	return RoundTripper(func(request *http.Request) (*http.Response, error) {
		r.mu.Lock()
		line := request.Method + " " + request.URL.Path
		if request.Method == http.MethodGet {
			r.reads = append(r.reads, line)
		} else {
			r.writes = append(r.writes, line)
		}
		r.mu.Unlock()
		return next.RoundTrip(request)
	})
}

// RoundTripper is a function as a transport.
type RoundTripper func(*http.Request) (*http.Response, error)

// RoundTrip calls the function.
func (f RoundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }
