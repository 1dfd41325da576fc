package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"
	"google.golang.org/grpc/peer"

	"github.com/chandlery/chandlery/internal/connlimit"
)

const (
	// maxClients is the number of clients without a connection whose call rates are remembered.
	maxClients = 4096
	// watchInterval is the time between two checks for clients that do not read.
	watchInterval = time.Second
)

// connections is a listener that bounds the connections of clients and detects clients that do not read.
type connections struct {
	*connlimit.Listener

	limits  Limits
	metrics *metrics
	logger  *slog.Logger
	epoch   time.Time

	mu     sync.Mutex
	open   map[*connection]struct{}
	rates  map[string]*rate.Limiter
	closed rate.Sometimes
}

func newConnections(l net.Listener, limits Limits, m *metrics, logger *slog.Logger) *connections {
	refused := rate.Sometimes{First: 1, Interval: 10 * time.Second}
	return &connections{
		limits: limits, metrics: m, logger: logger, epoch: time.Now(),
		open: map[*connection]struct{}{}, rates: map[string]*rate.Limiter{},
		closed: rate.Sometimes{First: 1, Interval: 10 * time.Second},
		Listener: connlimit.New(l, limits.Connections, connlimit.Observer{
			Open:      func(n int) { m.connections.Set(float64(n)) },
			Displaced: m.connectionsDisplaced.Inc,
			Refused: func(host string) {
				m.connectionsRefused.Inc()
				refused.Do(func() {
					logger.Warn("Refusing connections: there are too many", "limit", limits.Connections, "client", host)
				})
			},
		}),
	}
}

// now returns the monotonic time since the listener was created.
func (s *connections) now() time.Duration { return time.Since(s.epoch) }

// Accept implements [net.Listener].
func (s *connections) Accept() (net.Conn, error) {
	accepted, err := s.Listener.Accept()
	if err != nil {
		return nil, err
	}
	bounded, ok := accepted.(*connlimit.Conn)
	if !ok {
		return nil, fmt.Errorf("%w: %T", errForeign, accepted)
	}
	return s.add(bounded), nil
}

// errForeign is a fault of the server, not of a client.
var errForeign = errors.New("a connection that the listener has not bounded")

// add wraps an accepted connection for gRPC.
func (s *connections) add(bounded *connlimit.Conn) *connection {
	c := &connection{Conn: bounded, set: s}
	c.remote = remoteAddr{Addr: bounded.RemoteAddr(), connection: c}
	s.mu.Lock()
	defer s.mu.Unlock()
	c.calls = s.rate(bounded.Host())
	s.open[c] = struct{}{}
	return c
}

// rate returns the limiter for the calls of a host, or nil. When there are too many hosts, it drops
// those without a connection.
func (s *connections) rate(host string) *rate.Limiter {
	if s.limits.CallRate <= 0 {
		return nil
	}
	if known := s.rates[host]; known != nil {
		return known
	}
	if len(s.rates) >= len(s.open)+maxClients {
		connected := make(map[string]*rate.Limiter, len(s.open))
		for c := range s.open {
			connected[c.Host()] = c.calls
		}
		s.rates = connected
	}
	limiter := rate.NewLimiter(rate.Limit(s.limits.CallRate), s.limits.CallBurst)
	s.rates[host] = limiter
	return limiter
}

// watch closes the connections of clients that do not read, until ctx ends.
func (s *connections) watch(ctx context.Context) {
	if s.limits.StallTimeout == 0 {
		return
	}
	ticker := time.NewTicker(min(watchInterval, s.limits.StallTimeout/4))
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		for _, c := range s.stalled() {
			s.metrics.stalled.Inc()
			s.closed.Do(func() {
				s.logger.WarnContext(ctx, "Closing the connection of a client that does not read",
					"client", c.remote.String(), "timeout", s.limits.StallTimeout.String())
			})
			_ = c.Conn.Close()
		}
	}
}

// stalled returns the connections that have made no progress for too long.
func (s *connections) stalled() []*connection {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	var found []*connection
	for c := range s.open {
		if c.stalled(now, s.limits.StallTimeout) {
			found = append(found, c)
		}
	}
	return found
}

// connection is a connection that a client opened.
type connection struct {
	*connlimit.Conn

	set *connections
	// calls limits the calls of the client; nil for any number.
	calls  *rate.Limiter
	remote remoteAddr
	// greeted is set after the first read from the client. held are the bytes to send after that.
	// Only the goroutine that opens the connection accesses both; other goroutines use the
	// connection afterwards.
	greeted bool
	held    []byte
	writes  progress
	unread  unread
	// written is the number of written bytes. seen is that number when the connection last made
	// progress, at the time since. Only the goroutine that checks for stalls accesses seen and
	// since.
	written atomic.Int64
	seen    int64
	since   time.Duration
}

// Read implements [net.Conn].
func (c *connection) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if c.greeted || n == 0 {
		return n, err
	}
	c.greeted = true
	if c.answerHTTP1(p[:n]) {
		return 0, io.EOF
	}
	if len(c.held) > 0 {
		if _, err := c.Write(c.held); err != nil {
			return 0, err
		}
		c.held = nil
	}
	return n, err
}

// maxHeld is more than gRPC sends before it has read from the client.
const maxHeld = 1 << 10

// Write implements [net.Conn]. It holds bytes back until the first read from the client: they would
// confuse a client that does not use HTTP/2.
func (c *connection) Write(p []byte) (int, error) {
	if !c.greeted && len(c.held)+len(p) <= maxHeld {
		c.held = append(c.held, p...)
		return len(p), nil
	}
	c.writes.begin()
	defer c.writes.end()
	n, err := c.Conn.Write(p)
	c.written.Add(int64(n))
	return n, err
}

// Close implements [net.Conn].
func (c *connection) Close() error {
	c.set.mu.Lock()
	delete(c.set.open, c)
	c.set.mu.Unlock()
	return c.Conn.Close()
}

// RemoteAddr implements [net.Conn]. [connectionOf] finds the connection through the address.
func (c *connection) RemoteAddr() net.Addr { return &c.remote }

// http1 is the answer to clients that use HTTP/1. The connection closes after it.
const http1 = "HTTP/1.1 505 HTTP Version Not Supported\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\n" +
	"This port serves gRPC, which needs version 2 of HTTP.\n"

// answerHTTP1 answers an HTTP/1 request and reports whether there was one. gRPC would close the
// connection without an answer.
func (c *connection) answerHTTP1(first []byte) bool {
	method, _, found := strings.Cut(string(first[:min(len(first), 8)]), " ")
	if !found {
		return false
	}
	switch method {
	case "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "CONNECT", "TRACE":
		// A failed write has no consequence.
		_, _ = c.Conn.Write([]byte(http1))
		return true
	default:
		return false
	}
}

// stalled reports whether the client does not read: for the timeout a write has blocked, or nothing
// was written although messages wait, or a message is overdue.
func (c *connection) stalled(now, timeout time.Duration) bool {
	waiting, overdue := c.unread.state(now)
	if written := c.written.Load(); !waiting || written != c.seen {
		c.seen, c.since = written, now
	}
	return c.writes.stalled(now, timeout) || overdue || now-c.since >= timeout
}

// progress tracks a repeated operation of one goroutine for another goroutine.
type progress struct {
	// steps is odd while the operation runs.
	steps atomic.Uint64
	// seen is steps at the previous check, and since is the time since when it is unchanged. Only
	// the checking goroutine accesses them.
	seen  uint64
	since time.Duration
}

func (p *progress) begin() { p.steps.Add(1) }

func (p *progress) end() { p.steps.Add(1) }

// stalled reports whether one run of the operation has lasted for the timeout.
func (p *progress) stalled(now, timeout time.Duration) bool {
	steps := p.steps.Load()
	if steps != p.seen || steps%2 == 0 {
		p.seen, p.since = steps, now
		return false
	}
	return now-p.since >= timeout
}

// remoteAddr is a client's address that refers to its connection.
type remoteAddr struct {
	net.Addr

	connection *connection
}

// connectionOf returns the connection of a call, or nil.
func connectionOf(ctx context.Context) *connection {
	p, ok := peer.FromContext(ctx)
	if !ok {
		return nil
	}
	address, ok := p.Addr.(*remoteAddr)
	if !ok {
		return nil
	}
	return address.connection
}
