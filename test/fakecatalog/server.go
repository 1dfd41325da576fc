// Package fakecatalog is a catalog server for tests of clients. It serves api.Registry on loopback,
// and optionally the extension API, with content and faults that the test chooses.
package fakecatalog

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/chandlery/chandlery/proto/api"
	registryv1 "github.com/chandlery/chandlery/proto/chandlery/registry/v1"
	"github.com/chandlery/chandlery/test/ports"
)

// Server serves one catalog. Its methods are safe for concurrent use.
type Server struct {
	endpoint
	paging
	gate
	calls

	mu       sync.Mutex
	packages []Package
	// ownDigest is the digest of the packages.
	ownDigest string
	failure   error
	// announced is the digest that the test has set; nil for the digest of the content.
	announced *string
	// extended is set if the extension API is served.
	extended bool
	hangups  int
	// changed is closed when Watch may have something to send.
	changed chan struct{}
}

// calls counts the calls of a server, and delays those for heads of channels.
type calls struct {
	asked, listed, heads atomic.Int32
	headDelay            atomic.Int64
}

// Asked returns how often ListPackages or GetInfo was called.
func (c *calls) Asked() int { return int(c.asked.Load()) }

// Listed returns how often ListBundles of api.Registry was called.
func (c *calls) Listed() int { return int(c.listed.Load()) }

// Heads returns how often GetBundleForChannel was called.
func (c *calls) Heads() int { return int(c.heads.Load()) }

// DelayHeads makes GetBundleForChannel return late.
func (c *calls) DelayHeads(delay time.Duration) { c.headDelay.Store(int64(delay)) }

// head counts a call for a head, and waits until it is due or the call ends.
func (c *calls) head(ctx context.Context) {
	c.heads.Add(1)
	select {
	case <-time.After(time.Duration(c.headDelay.Load())):
	case <-ctx.Done():
	}
}

// Start starts a server that stops when the test ends. It serves only api.Registry and announces a
// digest of its content.
func Start(tb testing.TB, packages ...Package) *Server {
	tb.Helper()
	return start(tb, &Server{}, packages)
}

// StartExtended starts a server that also serves the extension API.
func StartExtended(tb testing.TB, packages ...Package) *Server {
	tb.Helper()
	return start(tb, &Server{extended: true}, packages)
}

func start(tb testing.TB, s *Server, packages []Package) *Server {
	tb.Helper()
	s.tb, s.address, s.changed = tb, ports.Address(tb), make(chan struct{})
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

// Serve replaces the content.
func (s *Server) Serve(packages ...Package) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.packages, s.ownDigest = packages, digest(packages)
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
	return s.ownDigest
}

// Fail makes every call fail with err; nil ends this.
func (s *Server) Fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failure = err
	s.news()
}

// Restart serves again after Stop, at the same address.
func (s *Server) Restart() {
	s.tb.Helper()
	s.mu.Lock()
	extended := s.extended
	s.mu.Unlock()
	s.start(func(server *grpc.Server) {
		api.RegisterRegistryServer(server, &contract{server: s})
		if extended {
			registryv1.RegisterRegistryServiceServer(server, &extension{server: s})
		}
	})
}

// content returns the packages and the announced digest, or the error of every call.
func (s *Server) content() (packages []Package, digest string, err error) {
	s.pass()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.packages, s.digest(), s.failure
}
