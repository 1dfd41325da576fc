package dialtls

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
)

// Credentials are the credentials of the connections to one address. Each new connection uses the newest Material.
// Its methods are safe for concurrent use.
type Credentials struct {
	encrypted bool
	failure   atomic.Pointer[Error] // of the last connection

	mu       sync.Mutex
	material *Material
	problem  *Error
}

// NewCredentials returns credentials for a Security. Whether they use TLS never changes.
func NewCredentials(s Security) *Credentials {
	return &Credentials{encrypted: s.Settings.Enabled, material: s.Material, problem: s.Problem}
}

// Encrypted reports whether connections use TLS.
func (c *Credentials) Encrypted() bool { return c.encrypted }

// Update replaces the Material, and reports whether anything changed. If the new Security has a Problem, the last good
// Material stays in use, unless its settings are different: it then verifies less or other things than is asked for.
func (c *Credentials) Update(s Security) (changed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	before, problem := c.material, c.problem
	c.problem = s.Problem
	switch {
	case s.Material != nil:
		c.material = s.Material
	case c.material != nil && c.material.settings != s.Settings:
		c.material = nil
	}
	return !same(before, c.material) || (problem == nil) != (c.problem == nil) || problem != nil && problem.Text != c.problem.Text
}

func same(a, b *Material) bool { return (a == nil) == (b == nil) && (a == nil || a.sum == b.sum) }

// Status is the state of Credentials.
type Status struct {
	// Encrypted is true if connections use TLS.
	Encrypted bool
	// Problem is why the newest settings are not in use; nil if they are. InUse is true if older ones are.
	Problem *Error
	InUse   bool
	// Failure is why the last connection failed; nil if it did not, or not because of TLS.
	Failure *Error
	// Warning is about a certificate that expires soon; nil if there is none.
	Warning *Error
}

// Status returns the current state.
func (c *Credentials) Status(now time.Time) Status {
	c.mu.Lock()
	defer c.mu.Unlock()
	return Status{
		Encrypted: c.encrypted, Problem: c.problem, InUse: c.material != nil, Failure: c.failure.Load(), Warning: c.material.Warning(now),
	}
}

// Expiry returns the time at which the client certificate expires; zero if there is none.
func (c *Credentials) Expiry() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.material.Expiry()
}

// Failure returns why there is no connection; nil if TLS does not prevent one.
func (c *Credentials) Failure() *Error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.encrypted && c.material == nil {
		return c.problem
	}
	return c.failure.Load()
}

// Dialer returns a function that connects with dial. If it fails, an earlier failure of TLS does not count any more.
func (c *Credentials) Dialer(dial func(ctx context.Context, address string) (net.Conn, error)) func(ctx context.Context, address string) (net.Conn, error) {
	return func(ctx context.Context, address string) (net.Conn, error) {
		conn, err := dial(ctx, address)
		if err != nil {
			c.failure.Store(nil)
		}
		return conn, err
	}
}

// ClientHandshake secures a connection. It implements credentials.TransportCredentials.
func (c *Credentials) ClientHandshake(ctx context.Context, authority string, raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	if !c.encrypted {
		conn, info, err := insecure.NewCredentials().ClientHandshake(ctx, authority, raw)
		return &watchedConn{Conn: conn, credentials: c, classify: plainFailure(authority)}, info, err
	}
	c.mu.Lock()
	material, problem := c.material, c.problem
	c.mu.Unlock()
	switch {
	case material == nil && problem != nil:
		return nil, nil, problem
	case material == nil:
		return nil, nil, errNoMaterial
	}
	attempt := newHandshake(material, authority)
	conn, info, err := credentials.NewTLS(attempt.config()).ClientHandshake(ctx, attempt.host, raw)
	if err != nil {
		failure := attempt.classify(err)
		if errors.Is(ctx.Err(), context.Canceled) {
			return nil, nil, failure // the supervisor has given up the connection
		}
		c.failure.Store(failure)
		return nil, nil, failure
	}
	return &watchedConn{Conn: conn, credentials: c, classify: attempt.classifyRead}, info, nil
}

// errNoMaterial is the error of a connection with TLS that is not needed any more.
var errNoMaterial = errors.New("TLS is not configured any more")

// ErrServer is the error of the server's side, which Credentials do not have.
var errServer = errors.New("these credentials are for clients")

// ServerHandshake returns an error: Credentials are for clients.
func (c *Credentials) ServerHandshake(net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return nil, nil, errServer
}

// Info returns the protocol.
func (c *Credentials) Info() credentials.ProtocolInfo {
	if !c.encrypted {
		return insecure.NewCredentials().Info()
	}
	return credentials.NewTLS(&tls.Config{MinVersion: tls.VersionTLS12}).Info()
}

// Clone returns the same credentials: connections share their state.
func (c *Credentials) Clone() credentials.TransportCredentials { return c }

// OverrideServerName does nothing: the name is in the Settings.
func (c *Credentials) OverrideServerName(string) error { return nil }

// watchedConn is a connection whose first read reports whether the server has accepted it. With TLS 1.3, a server refuses
// a client certificate after the handshake.
type watchedConn struct {
	net.Conn

	credentials *Credentials
	classify    func(first []byte, err error) *Error
	classified  atomic.Bool
}

// Read reads from the connection.
func (w *watchedConn) Read(p []byte) (int, error) {
	n, err := w.Conn.Read(p)
	if n == 0 && (err == nil || errors.Is(err, net.ErrClosed)) {
		return n, err //nolint:wrapcheck // net.Conn promises its own errors.
	}
	if w.classified.CompareAndSwap(false, true) {
		w.credentials.failure.Store(w.classify(p[:n], err))
	}
	return n, err //nolint:wrapcheck // net.Conn promises its own errors.
}

// refusalTimeout limits the reading of the reason for which a server has closed a connection.
const refusalTimeout = time.Second

// Write writes to the connection. A server that refuses a client closes the connection after its alert, so that a write
// can fail before the alert is read.
func (w *watchedConn) Write(p []byte) (int, error) {
	n, err := w.Conn.Write(p)
	if err != nil && !w.classified.Load() && w.SetReadDeadline(time.Now().Add(refusalTimeout)) == nil {
		_, _ = w.Read(make([]byte, 1))
	}
	return n, err //nolint:wrapcheck // net.Conn promises its own errors.
}
