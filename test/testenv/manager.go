package testenv

import (
	"context"
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
	// The API server takes the name of the field manager from it.
	cfg.UserAgent = "chandlery-supervisor"
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
