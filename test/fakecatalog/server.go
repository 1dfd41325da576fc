// Package fakecatalog is a catalog server for tests of clients. It serves api.Registry on loopback,
// and optionally the extension API, with content and faults that the test chooses.
package fakecatalog

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/chandlery/chandlery/proto/api"
	registryv1 "github.com/chandlery/chandlery/proto/chandlery/registry/v1"
	"github.com/chandlery/chandlery/test/ports"
)

// Server serves one catalog. Its methods are safe for concurrent use.
type Server struct {
	api.UnimplementedRegistryServer

	tb      testing.TB
	address string

	mu       sync.Mutex
	running  *grpc.Server
	ended    chan struct{}
	packages []Package
	failure  error
	listed   int
	asked    int
	// announced is the digest that the test has set; nil for the digest of the content.
	announced *string
	// extended is set if the extension API is served.
	extended bool
	pages    pages
	hangups  int
	// changed is closed when Watch may have something to send.
	changed chan struct{}
}

// Start starts a server that stops when the test ends. It serves only api.Registry and announces a
// digest of its content.
func Start(tb testing.TB, packages ...Package) *Server {
	tb.Helper()
	return start(tb, &Server{tb: tb}, packages)
}

// StartExtended starts a server that also serves the extension API.
func StartExtended(tb testing.TB, packages ...Package) *Server {
	tb.Helper()
	return start(tb, &Server{tb: tb, extended: true}, packages)
}

func start(tb testing.TB, s *Server, packages []Package) *Server {
	tb.Helper()
	s.address, s.changed = ports.Address(tb), make(chan struct{})
	s.Serve(packages...)
	s.Restart()
	tb.Cleanup(s.Stop)
	return s
}

// Extend sets whether the server has the extension API after its next restart.
func (s *Server) Extend(extended bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.extended = extended
}

// news notifies all watches of a change. The lock must be held.
func (s *Server) news() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// Address returns the address of the server. It does not change after a restart.
func (s *Server) Address() string { return s.address }

// Serve replaces the content.
func (s *Server) Serve(packages ...Package) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.packages = packages
	s.news()
}

// Announce replaces the announced digest of the content. With an empty one the server announces none, like opm's.
func (s *Server) Announce(digest string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.announced = &digest
	s.news()
}

// digest returns the announced digest. The lock must be held.
func (s *Server) digest() string {
	if s.announced != nil {
		return *s.announced
	}
	return digest(s.packages)
}

// Asked returns how often ListPackages was called.
func (s *Server) Asked() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked
}

// header returns the header of a stream.
func (s *Server) header() metadata.MD {
	if s.digest() == "" {
		return nil
	}
	return metadata.Pairs(api.ContentDigestHeader, s.digest())
}

// ListPackages sends the names of the packages.
func (s *Server) ListPackages(_ *api.ListPackageRequest, stream grpc.ServerStreamingServer[api.PackageName]) error {
	s.mu.Lock()
	s.asked++
	header := s.header()
	s.mu.Unlock()
	packages, err := s.content()
	if err != nil {
		return err
	}
	if err := stream.SetHeader(header); err != nil {
		return err
	}
	for _, p := range packages {
		if err := stream.Send(&api.PackageName{Name: p.Name}); err != nil {
			return err
		}
	}
	return nil
}

// Fail makes every call fail with err; nil ends this.
func (s *Server) Fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failure = err
	s.news()
}

// Listed returns how often the content was requested.
func (s *Server) Listed() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.listed
}

// Stop closes the listener and every connection.
func (s *Server) Stop() {
	s.mu.Lock()
	running, ended := s.running, s.ended
	s.running = nil
	s.mu.Unlock()
	if running != nil {
		running.Stop()
		<-ended
	}
}

// Restart serves again after Stop, at the same address.
func (s *Server) Restart() {
	s.tb.Helper()
	var lc net.ListenConfig
	listener, err := lc.Listen(s.tb.Context(), "tcp", s.address)
	if err != nil {
		s.tb.Fatalf("listening at %s: %v", s.address, err)
	}
	server, ended := grpc.NewServer(), make(chan struct{})
	api.RegisterRegistryServer(server, s)
	s.mu.Lock()
	if s.extended {
		registryv1.RegisterRegistryServiceServer(server, &extension{server: s})
	}
	s.address, s.running, s.ended = listener.Addr().String(), server, ended
	s.mu.Unlock()
	go func() {
		defer close(ended)
		// A server that is stopped early returns an error without any problem.
		if err := server.Serve(listener); err != nil && !errors.Is(err, grpc.ErrServerStopped) {
			s.tb.Errorf("serving: %v", err)
		}
	}()
}

func (s *Server) content() ([]Package, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.packages, s.failure
}

// ListBundles sends every channel entry.
func (s *Server) ListBundles(_ *api.ListBundlesRequest, stream grpc.ServerStreamingServer[api.Bundle]) error {
	s.mu.Lock()
	s.listed++
	header := s.header()
	s.mu.Unlock()
	packages, err := s.content()
	if err != nil {
		return err
	}
	if err := stream.SetHeader(header); err != nil {
		return err
	}
	for _, p := range packages {
		for _, b := range p.Bundles() {
			if err := stream.Send(b); err != nil {
				return err
			}
		}
	}
	return nil
}

// GetPackage returns a package.
func (s *Server) GetPackage(_ context.Context, request *api.GetPackageRequest) (*api.Package, error) {
	packages, err := s.content()
	if err != nil {
		return nil, err
	}
	for _, p := range packages {
		if p.Name == request.GetName() {
			return p.Package(), nil
		}
	}
	return nil, status.Errorf(codes.NotFound, "no package %s", request.GetName())
}

// GetBundle returns a bundle of a channel.
func (s *Server) GetBundle(_ context.Context, request *api.GetBundleRequest) (*api.Bundle, error) {
	packages, err := s.content()
	if err != nil {
		return nil, err
	}
	for _, p := range packages {
		for _, b := range p.Bundles() {
			if b.GetPackageName() == request.GetPkgName() && b.GetChannelName() == request.GetChannelName() && b.GetCsvName() == request.GetCsvName() {
				b.Replaces, b.Skips = "", nil
				return b, nil
			}
		}
	}
	return nil, status.Errorf(codes.NotFound, "no bundle %s in channel %s of package %s", request.GetCsvName(), request.GetChannelName(), request.GetPkgName())
}
