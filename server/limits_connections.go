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
	// maxClients is how many clients without a connection are remembered, for
	// the calls that they made.
	maxClients = 4096
	// watchInterval is between two looks for clients that do not read.
	watchInterval = time.Second
)

// connections is a listener that bounds the connections of clients and watches
// whether they read.
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

// now is the time since the listener was made, which never goes back.
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

// errForeign is not the fault of a client.
var errForeign = errors.New("a connection that the listener has not bounded")

// add returns an accepted connection as gRPC uses it.
func (s *connections) add(bounded *connlimit.Conn) *connection {
	c := &connection{Conn: bounded, set: s}
	c.remote = remoteAddr{Addr: bounded.RemoteAddr(), connection: c}
	s.mu.Lock()
	defer s.mu.Unlock()
	c.calls = s.rate(bounded.Host())
	s.open[c] = struct{}{}
	return c
}

// rate returns what bounds the calls of a host, or nil. When there are too many
// hosts those without a connection are dropped.
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

// watch ends the connections of clients that do not read, until ctx ends.
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
	// calls bounds those of the client; nil for any number.
	calls  *rate.Limiter
	remote remoteAddr
	// greeted is set when the first bytes of the client have been looked at, and
	// held is what was to be sent before. Both are the business of the goroutine
	// that opens the connection; there are others only afterwards.
	greeted bool
	held    []byte
	writes  progress
	unread  unread
	// written bytes, how many there were when the connection was found to get on
	// last, and when that was; the latter two for the goroutine that looks.
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

// maxHeld is more than what gRPC sends before it hears of the client.
const maxHeld = 1 << 10

// Write implements [net.Conn]. What comes before the client's first bytes waits
// for them: it would confuse a client that does not speak HTTP/2.
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

// RemoteAddr implements [net.Conn]. Calls find their connection through it.
func (c *connection) RemoteAddr() net.Addr { return &c.remote }

// http1 is what somebody reads who takes the port for a web server's. It ends
// with the connection.
const http1 = "HTTP/1.1 505 HTTP Version Not Supported\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\n" +
	"This port serves gRPC, which needs version 2 of HTTP.\n"

// answerHTTP1 answers a request of HTTP/1, upon which gRPC would close the
// connection without a word, and tells whether it was one.
func (c *connection) answerHTTP1(first []byte) bool {
	method, _, found := strings.Cut(string(first[:min(len(first), 8)]), " ")
	if !found {
		return false
	}
	switch method {
	case "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "CONNECT", "TRACE":
		// Who does not take the answer does without.
		_, _ = c.Conn.Write([]byte(http1))
		return true
	default:
		return false
	}
}

// stalled reports whether the client does not read: its socket takes nothing or,
// while there are messages for it, nothing is written, both for the timeout, or a
// message is not taken in time.
func (c *connection) stalled(now, timeout time.Duration) bool {
	waiting, overdue := c.unread.look(now)
	if written := c.written.Load(); !waiting || written != c.seen {
		c.seen, c.since = written, now
	}
	return c.writes.stalled(now, timeout) || overdue || now-c.since >= timeout
}

// progress of something that is done again and again by one goroutine and
// looked at by another.
type progress struct {
	// steps is odd while something is being done.
	steps atomic.Uint64
	// seen steps at the look before, and since when they are the same; for the
	// goroutine that looks.
	seen  uint64
	since time.Duration
}

func (p *progress) begin() { p.steps.Add(1) }

func (p *progress) end() { p.steps.Add(1) }

// stalled tells whether the same thing has been under way for the timeout.
func (p *progress) stalled(now, timeout time.Duration) bool {
	steps := p.steps.Load()
	if steps != p.seen || steps%2 == 0 {
		p.seen, p.since = steps, now
		return false
	}
	return now-p.since >= timeout
}

// remoteAddr is the address of a client that leads to the connection.
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
