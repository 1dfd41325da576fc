package fakecatalog

import (
	"crypto/tls"
	"errors"
	"net"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
)

// endpoint is a gRPC server that can be stopped and started again at the same address.
type endpoint struct {
	tb      testing.TB
	address string

	mu      sync.Mutex
	running *grpc.Server
	tls     *tls.Config
	ended   chan struct{}
}

// Address returns the address of the server. It does not change after a restart.
func (e *endpoint) Address() string { return e.address }

// Secure sets the configuration of TLS after the next restart; nil for plain text.
func (e *endpoint) Secure(config *tls.Config) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.tls = config
}

// Stop closes the listener and every connection.
func (e *endpoint) Stop() {
	e.mu.Lock()
	running, ended := e.running, e.ended
	e.running = nil
	e.mu.Unlock()
	if running != nil {
		running.Stop()
		<-ended
	}
}

// start serves the services that register adds.
func (e *endpoint) start(register func(*grpc.Server)) {
	e.tb.Helper()
	var lc net.ListenConfig
	listener, err := lc.Listen(e.tb.Context(), "tcp", e.address)
	if err != nil {
		e.tb.Fatalf("listening at %s: %v", e.address, err)
	}
	var options []grpc.ServerOption
	e.mu.Lock()
	if e.tls != nil {
		options = append(options, grpc.Creds(credentials.NewTLS(e.tls)))
	}
	e.mu.Unlock()
	server, ended := grpc.NewServer(options...), make(chan struct{})
	register(server)
	e.mu.Lock()
	e.running, e.ended = server, ended
	e.mu.Unlock()
	go func() {
		defer close(ended)
		// A server that is stopped early returns an error without any problem.
		if err := server.Serve(listener); err != nil && !errors.Is(err, grpc.ErrServerStopped) {
			e.tb.Errorf("serving: %v", err)
		}
	}()
}
