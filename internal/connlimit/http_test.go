package connlimit

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// TestHTTPServer has one client hold as many keep-alive connections as it can get while others
// probe. Some of the connections have a request that never ends.
func TestHTTPServer(t *testing.T) {
	const limit = 16
	raw, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var open atomic.Int64
	l := New(raw, limit, Observer{Open: func(n int) { open.Store(int64(n)) }})
	server := NewHTTPServer(l, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") }))
	done := make(chan error, 1)
	go func() { done <- server.Serve(l) }()
	defer func() {
		if err := errors.Join(server.Close()); err != nil {
			t.Error(err)
		}
		<-done
	}()
	address := raw.Addr().String()
	for i := range 20 * limit {
		conn := dial(t, "127.0.0.2", address)
		request := "GET / HTTP/1.1\r\nHost: x\r\n\r\n"
		if i%2 == 0 {
			request = "GET / HTTP/1.1\r\nHost: x"
		}
		// The server may have closed it already.
		_, _ = io.WriteString(conn, request)
		if i%limit == 0 {
			probe(t, "127.0.0.2", address)
			probe(t, "127.0.0.3", address)
		}
		if got := open.Load(); got > limit+leastSpare {
			t.Fatalf("%d connections are open, want %d at most", got, limit+leastSpare)
		}
	}
}

// TestHTTPServerTimeouts checks that the server limits the time of each part of a request.
func TestHTTPServerTimeouts(t *testing.T) {
	s := NewHTTPServer(New(nil, 1, Observer{}), nil)
	for name, got := range map[string]time.Duration{
		"headers": s.ReadHeaderTimeout, "request": s.ReadTimeout, "answer": s.WriteTimeout, "idle": s.IdleTimeout,
	} {
		if got <= 0 || got > time.Minute {
			t.Errorf("the timeout of %s is %v", name, got)
		}
	}
}

// TestHTTPServerHeaders sends headers below and above the limit. net/http adds some KiB to the
// limit.
func TestHTTPServerHeaders(t *testing.T) {
	server := httptest.NewUnstartedServer(nil)
	server.Config = NewHTTPServer(New(nil, 1, Observer{}), http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	server.Start()
	defer server.Close()
	for size, want := range map[int]int{15 << 10: http.StatusOK, 30 << 10: http.StatusRequestHeaderFieldsTooLarge} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Fill", strings.Repeat("x", size))
		response, err := server.Client().Do(request)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode != want {
			t.Errorf("headers of %d bytes get %s, want status %d", size, response.Status, want)
		}
	}
}

func dial(t *testing.T, from, address string) net.Conn {
	t.Helper()
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	conn, err := dialer.DialContext(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// probe makes a request as the kubelet does, on a connection of its own.
func probe(t *testing.T, from, address string) {
	t.Helper()
	transport := &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, address string) (net.Conn, error) {
		return (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}).DialContext(ctx, "tcp", address)
	}}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := (&http.Client{Transport: transport, Timeout: 10 * time.Second}).Do(request)
	if err != nil {
		t.Fatalf("a probe from %s fails: %v", from, err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		t.Errorf("a probe from %s gets %s", from, response.Status)
	}
}

// TestConnStateWithTLS checks that a connection with TLS counts as busy during a request.
func TestConnStateWithTLS(t *testing.T) {
	l := New(nil, 1, Observer{})
	c := l.admit(&fakeConn{from: "192.0.2.1"})
	secured := tls.Server(c, &tls.Config{MinVersion: tls.VersionTLS12})
	for state, want := range map[http.ConnState]bool{http.StateActive: true, http.StateIdle: false} {
		if state == http.StateIdle {
			c.Begin()
		}
		l.ConnState(secured, state)
		if got := c.busy(); got != want {
			t.Errorf("in state %s, busy is %t", state, got)
		}
		c.requests.Store(0)
	}
}
