package server

import (
	"context"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"
	"google.golang.org/grpc/peer"
)

const (
	// ownQuiet is how long a connection must have been quiet before another one
	// of the same client takes its place.
	ownQuiet = 10 * time.Second
	// maxClients is how many clients without a connection are remembered, for
	// the calls that they made.
	maxClients = 4096
	// watchInterval is between two looks for clients that do not read.
	watchInterval = time.Second
)

// connections is a listener that keeps count of what it accepted. When there
// are as many connections as there may be, it closes one rather than leave
// anybody hanging.
type connections struct {
	net.Listener

	limits  Limits
	metrics *metrics
	logger  *slog.Logger
	epoch   time.Time
	// encrypted is set when what is read and written is not HTTP/2 yet.
	encrypted bool
	// streams of all connections.
	streams atomic.Int64

	mu      sync.Mutex
	open    map[*connection]struct{}
	clients map[string]*client
	refused rate.Sometimes
	closed  rate.Sometimes
}

// client is whoever calls from one IP address.
type client struct {
	// open connections, under the lock of the set.
	open int
	// calls bounds them; nil if they are not.
	calls *rate.Limiter
}

func newConnections(l net.Listener, limits Limits, m *metrics, logger *slog.Logger) *connections {
	return &connections{
		Listener: l, limits: limits, metrics: m, logger: logger, epoch: time.Now(),
		open: map[*connection]struct{}{}, clients: map[string]*client{},
		refused: rate.Sometimes{First: 1, Interval: 10 * time.Second},
		closed:  rate.Sometimes{First: 1, Interval: 10 * time.Second},
	}
}

// now is the time since the listener was made, which never goes back.
func (s *connections) now() time.Duration { return time.Since(s.epoch) }

// Accept implements [net.Listener].
func (s *connections) Accept() (net.Conn, error) {
	for {
		conn, err := s.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if c := s.admit(conn); c != nil {
			return c, nil
		}
		// Nobody waits for the outcome.
		_ = conn.Close()
	}
}

// admit makes room for a connection, or returns nil if there is none.
func (s *connections) admit(conn net.Conn) *connection {
	host := hostOf(conn.RemoteAddr())
	s.mu.Lock()
	defer s.mu.Unlock()
	owner := s.client(host)
	if s.limits.Connections > 0 && len(s.open) >= s.limits.Connections {
		victim := s.victim(owner)
		if victim == nil {
			s.metrics.connectionsRefused.Inc()
			s.refused.Do(func() {
				s.logger.Warn("Refusing connections: there are too many", "limit", s.limits.Connections, "client", host)
			})
			return nil
		}
		s.metrics.connectionsDisplaced.Inc()
		s.forget(victim)
		// Its transport notices.
		_ = victim.Conn.Close()
	}
	c := &connection{Conn: conn, set: s, client: owner, answers: answers{all: &s.streams}}
	c.remote = remoteAddr{Addr: conn.RemoteAddr(), connection: c}
	c.heard.Store(int64(s.now()))
	s.open[c] = struct{}{}
	owner.open++
	s.metrics.connections.Set(float64(len(s.open)))
	return c
}

// client returns the record of a host. Those that have no connection are
// dropped when they are too many.
func (s *connections) client(host string) *client {
	if c := s.clients[host]; c != nil {
		return c
	}
	if len(s.clients) >= len(s.open)+maxClients {
		for name, c := range s.clients {
			if c.open == 0 {
				delete(s.clients, name)
			}
		}
	}
	c := &client{}
	if s.limits.CallRate > 0 {
		c.calls = rate.NewLimiter(rate.Limit(s.limits.CallRate), s.limits.CallBurst)
	}
	s.clients[host] = c
	return c
}

// victim chooses a connection that makes room for one of a client: one without
// a call under way, of the client that has the most, which has been quiet for
// longest; those that never had a call come first.
func (s *connections) victim(newcomer *client) *connection {
	largest := newcomer
	for _, c := range s.clients {
		if c.open > largest.open+1 {
			largest = c
		}
	}
	least := time.Duration(0)
	if largest == newcomer {
		least = ownQuiet
	}
	now := s.now()
	var found *connection
	for c := range s.open {
		if c.client == largest && c.calls.Load() == 0 && now-time.Duration(c.heard.Load()) >= least &&
			(found == nil || c.before(found)) {
			found = c
		}
	}
	return found
}

// forget takes a connection out of the set, once.
func (s *connections) forget(c *connection) {
	if _, ok := s.open[c]; !ok {
		return
	}
	delete(s.open, c)
	c.client.open--
	s.metrics.connections.Set(float64(len(s.open)))
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
	net.Conn

	set    *connections
	client *client
	remote remoteAddr
	// calls under way, and whether there was ever one.
	calls atomic.Int64
	used  atomic.Bool
	// heard is when something was read last.
	heard atomic.Int64
	// greeted is set when the first bytes of the client have been looked at, and
	// held is what was to be sent before. Both are the business of the goroutine
	// that opens the connection; there are others only afterwards.
	greeted bool
	held    []byte
	writes  progress
	answers answers
	// unread is set when there were answers that nobody took at the look before;
	// for the goroutine that looks.
	unread bool

	mu      sync.Mutex
	streams map[*serverStream]struct{}
}

// before tells whether a connection is the better victim.
func (c *connection) before(other *connection) bool {
	if used := c.used.Load(); used != other.used.Load() {
		return !used
	}
	return c.heard.Load() < other.heard.Load()
}

// Read implements [net.Conn].
func (c *connection) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.heard.Store(int64(c.set.now()))
	if !c.set.encrypted {
		c.answers.received(p[:n])
	}
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
	if !c.set.encrypted {
		c.answers.sent(p[:n], c.set.now())
	}
	return n, err
}

// Close implements [net.Conn].
func (c *connection) Close() error {
	c.set.mu.Lock()
	c.set.forget(c)
	c.set.mu.Unlock()
	c.answers.end()
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

// stalled tells whether a message, an answer or the connection itself has been
// waiting for the client for the timeout.
//
// An answer that does not get on may also wait for a handler that has nothing
// to say yet. Which answer is whose is not known, but there are no more of that
// kind than there are handlers. Nothing but streams has such: all else is
// answered at once. What has just ended is not taken for waiting, as it is not
// there any more at the next look.
func (c *connection) stalled(now, timeout time.Duration) bool {
	found := c.writes.stalled(now, timeout)
	waiting := c.answers.waiting(now, timeout)
	c.mu.Lock()
	defer c.mu.Unlock()
	for s := range c.streams {
		found = s.sends.stalled(now, timeout) || found
		if s.sends.steps.Load() > 0 {
			waiting--
		}
	}
	before := c.unread
	c.unread = waiting > 0
	return found || before && c.unread
}

func (c *connection) add(s *serverStream) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.streams == nil {
		c.streams = map[*serverStream]struct{}{}
	}
	c.streams[s] = struct{}{}
}

func (c *connection) remove(s *serverStream) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.streams, s)
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

// hostOf is who is at an address: connections from all its ports are the same
// client's.
func hostOf(address net.Addr) string {
	host, _, err := net.SplitHostPort(address.String())
	if err != nil {
		return address.String()
	}
	return host
}
