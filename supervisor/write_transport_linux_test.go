package supervisor

import (
	"context"
	"net"
	"net/http"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/client-go/rest"
	testingclock "k8s.io/utils/clock/testing"
)

// TestUnacknowledgedIsLimited checks how long the kernel keeps sending what the peer does not acknowledge: on the
// connection for writes it has a limit, and on the one for reads it has none of its own.
func TestUnacknowledgedIsLimited(t *testing.T) {
	var (
		mu    sync.Mutex
		conns = map[string]net.Conn{} // by local address
	)
	server := newAPIServer(t)
	cfg := server.config()
	cfg.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
		if err == nil {
			mu.Lock()
			defer mu.Unlock()
			conns[conn.LocalAddr().String()] = conn
		}
		return conn, err
	}
	clock := testingclock.NewFakePassiveClock(time.Now())
	f := &fence{clock: clock, renewDeadline: time.Minute}
	f.renew(clock.Now())
	guarded, err := fenceWrites(cfg, f, 3*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	transport, err := rest.TransportFor(guarded)
	if err != nil {
		t.Fatal(err)
	}
	for method, want := range map[string]int{http.MethodGet: 0, http.MethodPut: 3000} {
		req, err := http.NewRequestWithContext(t.Context(), method, server.URL+"/api/v1/namespaces/n/configmaps/c", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := transport.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		server.mu.Lock()
		remote := server.remotes[method]
		server.mu.Unlock()
		mu.Lock()
		conn := conns[remote]
		mu.Unlock()
		if got := userTimeout(t, conn); got != want {
			t.Errorf("%s: %d ms, want %d", method, got, want)
		}
	}
}

// userTimeout returns the TCP_USER_TIMEOUT of a connection in milliseconds.
func userTimeout(t *testing.T, conn net.Conn) (milliseconds int) {
	t.Helper()
	tcp, is := conn.(syscall.Conn)
	if !is {
		t.Fatalf("connection %T has no socket", conn)
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var failed error
	err = raw.Control(func(fd uintptr) {
		milliseconds, failed = unix.GetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT)
	})
	if err != nil || failed != nil {
		t.Fatal(err, failed)
	}
	return milliseconds
}
