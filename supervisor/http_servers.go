package supervisor

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/chandlery/chandlery/internal/connlimit"
)

// maxConnections is the maximum number of connections to the port of metrics, and to that of probes. Prometheus
// keeps one or two, and each probe uses one for a moment.
const maxConnections = 64

// errServing is the error of a failed server of metrics or probes.
var errServing = errors.New("serving metrics and probes")

// servers are the servers of metrics and probes. They start before the manager. The manager's own servers do
// not limit connections.
type servers []*manager.Server

// openPorts opens the ports of metrics and probes.
func openPorts(ctx context.Context, cfg *rest.Config, o Options, ready http.Handler) (servers, error) {
	probes := http.NewServeMux()
	handle(probes, "/healthz", &healthz.Handler{Checks: map[string]healthz.Checker{"ping": healthz.Ping}})
	handle(probes, "/readyz", ready)
	measured, secured, err := metricsHandler(cfg, o.MetricsTLS)
	if err != nil {
		return nil, err
	}
	var opened servers
	for _, port := range []struct {
		name, address string
		handler       http.Handler
		secured       *tls.Config
	}{{"probes", o.HealthAddress, probes, nil}, {"metrics", o.MetricsAddress, measured, secured}} {
		if port.address == "" || port.address == "0" {
			continue
		}
		server, err := openPort(ctx, port.name, port.address, port.handler)
		if err != nil {
			return nil, errors.Join(err, opened.close())
		}
		if port.secured != nil {
			server.Listener = tls.NewListener(server.Listener, port.secured)
		}
		opened = append(opened, server)
	}
	return opened, nil
}

// metricsHandler returns the handler of metrics, and the TLS configuration of its port; nil for plain HTTP.
func metricsHandler(cfg *rest.Config, t MetricsTLS) (http.Handler, *tls.Config, error) {
	measured := http.NewServeMux()
	measured.Handle("/metrics", promhttp.HandlerFor(metrics.Registry, promhttp.HandlerOpts{ErrorHandling: promhttp.HTTPErrorOnError}))
	if !t.enabled() {
		return measured, nil, nil
	}
	secured, err := t.config()
	if err != nil {
		return nil, nil, err
	}
	filtered, err := authorized(cfg, measured)
	return filtered, secured, err
}

// handle adds a handler for a path and everything below it. The handler gets the path without this prefix.
func handle(mux *http.ServeMux, path string, handler http.Handler) {
	mux.Handle(path, http.StripPrefix(path, handler))
	mux.Handle(path+"/", http.StripPrefix(path, handler))
}

// openPort opens an address and returns a server for it.
func openPort(ctx context.Context, name, address string, handler http.Handler) (*manager.Server, error) {
	var config net.ListenConfig
	opened, err := config.Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("opening the port of %s: %w", name, err)
	}
	listener := connlimit.New(opened, maxConnections, connlimit.Observer{})
	return &manager.Server{
		Name: name, Server: connlimit.NewHTTPServer(listener, handler), Listener: listener, ShutdownTimeout: new(shutdownTimeout),
	}, nil
}

// close closes the ports of servers that do not run.
func (s servers) close() error {
	var failures []error
	for _, server := range s {
		failures = append(failures, server.Listener.Close())
	}
	return errors.Join(failures...)
}

// serve runs the servers until stop is called, even after ctx has ended. If a server fails, serve ends the
// process.
func (s servers) serve(ctx context.Context, cancelRun context.CancelCauseFunc) (stop func() error) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var running errgroup.Group
	for _, server := range s {
		running.Go(func() error {
			err := server.Start(ctx)
			if err != nil {
				err = fmt.Errorf("%w: %s: %w", errServing, server.Name, err)
				cancelRun(err)
			}
			return err
		})
	}
	return func() error {
		cancel()
		return running.Wait() //nolint:wrapcheck // wrapped above
	}
}
