package supervisor

import (
	"context"
	"fmt"
	"net"
	"net/http"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/chandlery/chandlery/internal/connlimit"
)

// maxConnections is how many connections the port of metrics has, and that of probes.
// Prometheus keeps one or two, and each probe has one for a moment.
const maxConnections = 64

// addPorts adds the servers of metrics and probes to a manager. Its own servers take any
// number of connections.
func addPorts(ctx context.Context, mgr ctrl.Manager, o Options) error {
	probes := http.NewServeMux()
	handle(probes, "/healthz", &healthz.Handler{Checks: map[string]healthz.Checker{"ping": healthz.Ping}})
	handle(probes, "/readyz", &healthz.Handler{Checks: map[string]healthz.Checker{"caches": cachesSynced(mgr.GetCache())}})
	measured := http.NewServeMux()
	measured.Handle("/metrics", promhttp.HandlerFor(metrics.Registry, promhttp.HandlerOpts{ErrorHandling: promhttp.HTTPErrorOnError}))
	if err := addPort(ctx, mgr, "probes", o.HealthAddress, probes); err != nil {
		return err
	}
	return addPort(ctx, mgr, "metrics", o.MetricsAddress, measured)
}

// handle adds a handler for a path and for what is below it, of which the handler gets the
// rest.
func handle(mux *http.ServeMux, path string, handler http.Handler) {
	mux.Handle(path, http.StripPrefix(path, handler))
	mux.Handle(path+"/", http.StripPrefix(path, handler))
}

// addPort opens an address, unless it is "0", and adds a server for it to a manager.
func addPort(ctx context.Context, mgr ctrl.Manager, name, address string, handler http.Handler) error {
	if address == "" || address == "0" {
		return nil
	}
	var config net.ListenConfig
	opened, err := config.Listen(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("opening the port of %s: %w", name, err)
	}
	listener := connlimit.New(opened, maxConnections, connlimit.Observer{})
	server := &manager.Server{
		Name: name, Server: connlimit.NewHTTPServer(listener, handler), Listener: listener, ShutdownTimeout: new(shutdownTimeout),
	}
	if err := mgr.Add(server); err != nil {
		return fmt.Errorf("adding the server of %s: %w", name, err)
	}
	return nil
}
