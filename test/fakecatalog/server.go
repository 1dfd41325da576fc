// Package fakecatalog is a catalog server for tests of its clients: it serves
// api.Registry on loopback, with content and faults that the test chooses.
package fakecatalog

import (
	"context"
	"net"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/chandlery/chandlery/proto/api"
	"github.com/chandlery/chandlery/test/ports"
)

// Server serves one catalog. Its methods may be called from any goroutine.
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
	digest   string
	asked    int
}

// Start starts a server that stops when the test ends.
func Start(tb testing.TB, packages ...Package) *Server {
	tb.Helper()
	s := &Server{tb: tb, address: ports.Address(tb)}
	s.Serve(packages...)
	s.Restart()
	tb.Cleanup(s.Stop)
	return s
}

// Address is where the server listens, the same after each restart.
func (s *Server) Address() string { return s.address }

// Serve replaces the content.
func (s *Server) Serve(packages ...Package) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.packages = packages
}

// Announce makes the server send a digest of its content, as our registry does.
func (s *Server) Announce(digest string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.digest = digest
}

// Asked is how many times the packages have been asked for.
func (s *Server) Asked() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked
}

// header is what comes before the messages of a stream.
func (s *Server) header() metadata.MD {
	if s.digest == "" {
		return nil
	}
	return metadata.Pairs(api.ContentDigestHeader, s.digest)
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

// Fail makes every call fail with err; nil ends that.
func (s *Server) Fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failure = err
}

// Listed is how many times the content has been asked for.
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
	s.address, s.running, s.ended = listener.Addr().String(), server, ended
	s.mu.Unlock()
	go func() {
		defer close(ended)
		if err := server.Serve(listener); err != nil {
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

// GetPackage finds a package.
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

// GetBundle finds a bundle in a channel.
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
