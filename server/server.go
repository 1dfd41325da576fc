package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/reflection"

	"github.com/chandlery/chandlery/internal/connlimit"
	"github.com/chandlery/chandlery/server/extension"
	"github.com/chandlery/chandlery/server/registry"
)

// Server serves one catalog.
type Server struct {
	config  Config
	metrics *metrics
	content *content
	health  *healthService
	grpc    *grpc.Server
	// extension has streams that do not end on their own.
	extension *extension.Service
	// files detects when the file of the index is truncated.
	files *fileWatch
	// certificates is nil without TLS.
	certificates *certificates
	// imageSettings is nil for a source without settings.
	imageSettings *imageSettings

	listener        *connections
	tlsAddress      net.Addr // nil if the listener has one port
	metricsListener *connlimit.Listener
}

// maxMetricsConnections is the largest number of connections to the port of metrics and probes.
// Prometheus keeps one or two open, and each probe opens one for a moment.
const maxMetricsConnections = 64

// New opens the ports. The caller must call [Server.Run], which closes them.
func New(ctx context.Context, config Config) (*Server, error) {
	config, err := config.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("checking configuration: %w", err)
	}
	s := &Server{config: config, metrics: newMetrics(config.Version, config.Commit), health: newHealthService()}
	s.content = &content{
		source: config.Source, interval: config.ReloadInterval, logger: config.Logger, metrics: s.metrics,
		onLoaded: s.health.serving, beforeLoad: config.OnLoading, servedIndex: servedIndex{reports: make(chan struct{}, 1)}, verifyAfter: verifyPause,
	}
	s.files = newFileWatch(s.content.current.Load, s.content.damaged, config.Logger)
	s.content.afterLoad = func() {
		s.files.requestCheck()
		if config.OnLoaded != nil {
			config.OnLoaded()
		}
	}
	s.extension = extension.New(extension.Config{
		Current: s.content.current.Load, Damaged: s.files.damaged, Content: &s.content.announcer,
		Version: config.Version, Commit: config.Commit,
	})
	if config.TLS.enabled() {
		if s.certificates, err = newCertificates(config.TLS, config.Logger, s.metrics); err != nil {
			return nil, err
		}
	}
	s.imageSettings = newImageSettings(&config, s.metrics)
	if err := s.listen(ctx); err != nil {
		return nil, err
	}
	s.grpc = s.newGRPC()
	return s, nil
}

func (s *Server) newGRPC() *grpc.Server {
	around := newCalls(s.config.Logger, s.metrics, newAccessLog(s.config.Logger, s.config.AccessLogSample), s.files)
	options := append(s.config.Limits.options(),
		grpc.UnaryInterceptor(around.unary), grpc.StreamInterceptor(around.stream),
		grpc.ForceServerCodecV2(registry.Codec()), grpc.StatsHandler(cancelledCalls{}),
	)
	if s.certificates != nil {
		options = append(options, grpc.Creds(s.credentials()))
	}
	if s.config.Tracing != nil {
		options = append(options, grpc.StatsHandler(s.config.Tracing.handler))
	}
	server := grpc.NewServer(options...)
	registry.Register(server, registry.New(s.content.current.Load, s.files.damaged))
	extension.Register(server, s.extension)
	healthpb.RegisterHealthServer(server, s.health)
	reflection.Register(server)
	around.registerMethods(server.GetServiceInfo())
	return server
}

// credentials returns the credentials of all connections.
func (s *Server) credentials() credentials.TransportCredentials {
	if secured, is := s.TLSAddress().(*net.TCPAddr); is {
		return securedPort{s.certificates.credentials(), secured.Port}
	}
	return s.certificates.credentials()
}

func (s *Server) listen(ctx context.Context) error {
	var config net.ListenConfig
	listener := s.config.Listener
	if listener == nil {
		var err error
		if listener, err = config.Listen(ctx, "tcp", s.config.Address); err != nil {
			return fmt.Errorf("opening the gRPC port: %w", err)
		}
	}
	if s.config.TLS.Address != "" {
		secured, err := config.Listen(ctx, "tcp", s.config.TLS.Address)
		if err != nil {
			return errors.Join(fmt.Errorf("opening the gRPC port for TLS: %w", err), listener.Close())
		}
		both := newTwoPorts(listener, secured)
		s.tlsAddress, listener = secured.Addr(), both
	}
	s.listener = newConnections(listener, s.config.Limits, s.metrics, s.config.Logger)
	if s.config.MetricsAddress == "" {
		return nil
	}
	metrics, err := config.Listen(ctx, "tcp", s.config.MetricsAddress)
	if err != nil {
		return errors.Join(fmt.Errorf("opening the metrics port: %w", err), s.listener.Close())
	}
	s.metricsListener = connlimit.New(metrics, maxMetricsConnections, connlimit.Observer{})
	return nil
}

// Address returns the address of the gRPC listener.
func (s *Server) Address() net.Addr { return s.listener.Addr() }

// TLSAddress returns the address of the listener for TLS alone, or nil.
func (s *Server) TLSAddress() net.Addr { return s.tlsAddress }

// MetricsAddress returns the address of the metrics listener, or nil.
func (s *Server) MetricsAddress() net.Addr {
	if s.metricsListener == nil {
		return nil
	}
	return s.metricsListener.Addr()
}

// Run serves until ctx ends or something fails. It returns when everything has stopped. It returns
// nil if ctx has ended, and an error that holds bundles.Problems if the first content cannot be
// served.
func (s *Server) Run(ctx context.Context) error {
	group, running := errgroup.WithContext(ctx)
	s.config.Logger.InfoContext(ctx, "Opened ports", "address", addressOf(s.Address()),
		"tlsAddress", addressOf(s.TLSAddress()), "metricsAddress", addressOf(s.MetricsAddress()))
	group.Go(func() error {
		if err := s.grpc.Serve(s.listener); err != nil && !errors.Is(err, grpc.ErrServerStopped) {
			return fmt.Errorf("serving gRPC: %w", err)
		}
		return nil
	})
	group.Go(func() error { return s.content.run(running) })
	group.Go(func() error { return s.watchFile(running) })
	group.Go(func() error { s.listener.watch(running); return nil })
	if s.certificates != nil {
		group.Go(func() error { s.certificates.watch(running); return nil })
	}
	if s.imageSettings != nil {
		group.Go(func() error { s.imageSettings.watch(running); return nil })
	}
	stopHTTP := s.serveHTTP(group)
	group.Go(func() error {
		<-running.Done()
		s.stop(context.WithoutCancel(ctx))
		// Metrics and probes are served until the stop is complete.
		return stopHTTP(context.WithoutCancel(ctx))
	})
	err := group.Wait()
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return nil
	}
	return err
}

// addressOf returns an address for the log; "" for none.
func addressOf(address net.Addr) string {
	if address == nil {
		return ""
	}
	return address.String()
}

// stop stops serving. It first sends clients away, then grants calls in progress their time, and
// then cancels them.
func (s *Server) stop(ctx context.Context) {
	s.config.Logger.DebugContext(ctx, "Stopping")
	s.health.shutdown()
	s.extension.Shutdown()
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.grpc.GracefulStop()
	}()
	timer := time.NewTimer(s.config.ShutdownTimeout)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
		s.config.Logger.WarnContext(ctx, "Calls are still under way, closing their connections",
			"timeout", s.config.ShutdownTimeout.String())
		s.grpc.Stop()
		<-done
	}
	s.config.Logger.DebugContext(ctx, "Stopped")
}

// serveHTTP serves metrics and probes, if enabled, and returns a function that stops it.
func (s *Server) serveHTTP(group *errgroup.Group) (stop func(context.Context) error) {
	if s.metricsListener == nil {
		return func(context.Context) error { return nil }
	}
	server := connlimit.NewHTTPServer(s.metricsListener, s.httpHandler())
	group.Go(func() error {
		if err := server.Serve(s.metricsListener); err != nil && !errors.Is(err, http.ErrServerClosed) {
			return fmt.Errorf("serving metrics: %w", err)
		}
		return nil
	})
	return func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		if err := server.Shutdown(ctx); err != nil {
			return errors.Join(fmt.Errorf("stopping metrics: %w", err), server.Close())
		}
		return nil
	}
}
