package supervisor

import (
	"context"
	"crypto/tls"
	"encoding/pem"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	testingclock "k8s.io/utils/clock/testing"
)

// recordingConn records everything that is written to it.
type recordingConn struct {
	net.Conn

	taken  int
	closed bool
	// before is called before each write.
	before func()
}

func (c *recordingConn) Write(p []byte) (int, error) {
	if c.before != nil {
		c.before()
	}
	c.taken += len(p)
	return len(p), nil
}
func (c *recordingConn) Close() error                     { c.closed = true; return nil }
func (c *recordingConn) SetWriteDeadline(time.Time) error { return nil }
func (c *recordingConn) RemoteAddr() net.Addr             { return &net.TCPAddr{} }

// TestFencedConnStops checks that no part of a write is sent after the fence closed, and that the connection is
// not used again.
func TestFencedConnStops(t *testing.T) {
	const piece = 16 << 10 // as docs/security.md says
	clock := testingclock.NewFakePassiveClock(time.Now())
	f := &fence{clock: clock, renewDeadline: 10 * time.Second}
	peer := &recordingConn{}
	conn := &fencedConn{Conn: peer, fence: f}

	if n, err := conn.Write(make([]byte, 10)); n != 0 || !errors.Is(err, ErrNotLeading) || peer.taken != 0 || !peer.closed {
		t.Errorf("without the lead: %d bytes, error %v; the peer got %d bytes, closed %v", n, err, peer.taken, peer.closed)
	}
	f.renew(clock.Now())
	if n, err := conn.Write(make([]byte, 3*piece+1)); n != 3*piece+1 || err != nil || peer.taken != n {
		t.Errorf("with the lead: %d bytes, error %v; the peer got %d bytes", n, err, peer.taken)
	}
	// The process freezes while it writes the second part.
	pieces := 0
	peer.taken, peer.before = 0, func() {
		pieces++
		if pieces == 2 {
			clock.SetTime(clock.Now().Add(10 * time.Second))
		}
	}
	if n, err := conn.Write(make([]byte, 4*piece)); n != 2*piece || !errors.Is(err, ErrNotLeading) || peer.taken != n {
		t.Errorf("frozen in the middle: %d bytes, error %v; the peer got %d bytes", n, err, peer.taken)
	}
}

// pausedClock is the clock of a virtual machine: its monotonic clock stops during a pause.
type pausedClock struct {
	wall time.Time
	ran  time.Duration
}

func (c *pausedClock) Now() time.Time                { return c.wall }
func (c *pausedClock) Since(time.Time) time.Duration { return c.ran }

// TestPausedMachine checks that the clock with the longer time closes the fence.
func TestPausedMachine(t *testing.T) {
	for _, tt := range []struct {
		reason    string
		wall, ran time.Duration
		open      bool
	}{
		{"nothing happened", 5 * time.Second, 5 * time.Second, true},
		{"the machine was paused", 10 * time.Second, time.Second, false},
		{"the process was frozen and the wall clock set back", -time.Hour, 10 * time.Second, false},
		{"the wall clock was set back", -time.Hour, time.Second, true},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			clock := &pausedClock{wall: time.Now()}
			f := &fence{clock: clock, renewDeadline: 10 * time.Second}
			f.renew(clock.Now())
			clock.wall, clock.ran = clock.wall.Add(tt.wall), tt.ran
			if f.open() != tt.open {
				t.Errorf("open: %v", f.open())
			}
		})
	}
}

// apiServer records which requests arrived completely, and on which connection.
type apiServer struct {
	*httptest.Server

	mu      sync.Mutex
	whole   []string
	remotes map[string]string
	// begun receives the method of each request whose header has arrived.
	begun chan string
}

func newAPIServer(t *testing.T) *apiServer {
	t.Helper()
	s := &apiServer{remotes: map[string]string{}, begun: make(chan string, 10)}
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.remotes[r.Method] = r.RemoteAddr
		s.mu.Unlock()
		s.begun <- r.Method
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			return
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.whole = append(s.whole, r.Proto+" "+r.Method)
	}))
	s.EnableHTTP2 = true
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

func (s *apiServer) arrived() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.whole, ", ")
}

func (s *apiServer) config() *rest.Config {
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	return &rest.Config{Host: s.URL, BearerToken: "token", TLSClientConfig: rest.TLSClientConfig{CAData: ca}}
}

// TestBegunRequestDoesNotEnd starts a write while the process leads, and freezes the process, as the fence sees
// it, before the body is sent. The request never arrives completely, and reads continue.
func TestBegunRequestDoesNotEnd(t *testing.T) {
	server := newAPIServer(t)
	clock := testingclock.NewFakePassiveClock(time.Now())
	f := &fence{clock: clock, renewDeadline: time.Minute}
	guarded, err := fenceWrites(server.config(), f, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	transport, err := rest.TransportFor(guarded)
	if err != nil {
		t.Fatal(err)
	}
	send := func(ctx context.Context, method string, body io.Reader) error {
		req, err := http.NewRequestWithContext(ctx, method, server.URL+"/api/v1/namespaces/n/configmaps/c", body)
		if err != nil {
			return err
		}
		resp, err := transport.RoundTrip(req)
		if err != nil {
			return err
		}
		return resp.Body.Close()
	}
	f.renew(clock.Now())
	for _, method := range []string{http.MethodGet, http.MethodPut} {
		if err := send(t.Context(), method, http.NoBody); err != nil {
			t.Fatalf("%s while leading: %v", method, err)
		}
		<-server.begun
	}
	if server.remotes[http.MethodGet] == server.remotes[http.MethodPut] {
		t.Error("reads and writes share a connection")
	}

	body, more := io.Pipe()
	sent := make(chan error, 1)
	go func() { sent <- send(t.Context(), http.MethodPatch, body) }()
	if _, err := more.Write([]byte(`{"begun":`)); err != nil {
		t.Fatal(err)
	}
	if method := <-server.begun; method != http.MethodPatch {
		t.Fatalf("%s has begun", method)
	}
	clock.SetTime(clock.Now().Add(time.Minute))
	go func() {
		// The write fails if the transport has given up the request.
		_, _ = more.Write([]byte("true}"))
		_ = more.Close()
	}()
	if err := <-sent; err == nil {
		t.Error("the request was answered")
	}
	if err := send(t.Context(), http.MethodGet, http.NoBody); err != nil {
		t.Errorf("reading afterwards: %v", err)
	}
	if got, want := server.arrived(), "HTTP/2.0 GET, HTTP/2.0 PUT, HTTP/2.0 GET"; got != want {
		t.Errorf("arrived: %s; want %s", got, want)
	}
	f.renew(clock.Now())
	if err := send(t.Context(), http.MethodDelete, http.NoBody); err != nil {
		t.Errorf("writing once it leads again: %v", err)
	}
}

// TestHandshakeIsFenced checks that without the lead, a connection cannot even be opened.
func TestHandshakeIsFenced(t *testing.T) {
	server := newAPIServer(t)
	raw, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	f := &fence{clock: testingclock.NewFakePassiveClock(time.Now()), renewDeadline: time.Minute}
	conn := tls.Client(&fencedConn{Conn: raw, fence: f}, &tls.Config{MinVersion: tls.VersionTLS12, ServerName: "example.com"})
	if err := conn.HandshakeContext(t.Context()); !errors.Is(err, ErrNotLeading) {
		t.Errorf("error %v", err)
	}
}
