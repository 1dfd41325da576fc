package suite_test

import (
	"errors"
	"net"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/onsi/gomega"

	"github.com/chandlery/chandlery/test/testenv"
)

// boundsConnections opens more connections from one client to an address than the supervisor accepts, while
// other clients request a path.
func boundsConnections(w *testenv.World, address, path string) {
	t := w.T
	t.Helper()
	const (
		attempts = 300
		// most is the maximum number of open connections, including those that are closed after a moment.
		most = 64 + 4
	)
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP("127.0.0.2")}}
	var held []net.Conn
	defer func() {
		for _, conn := range held {
			conn.Close()
		}
	}()
	for i := range attempts {
		conn, err := dialer.DialContext(t.Context(), "tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		held = append(held, conn)
		if i%50 == 0 {
			if status := get(t, "http://"+address+path); status != http.StatusOK {
				t.Errorf("beside %d connections of another client, %s%s answers %d", i, address, path, status)
			}
		}
	}
	w.Eventually(func() int { return open(t, held) }).Should(gomega.BeNumerically("<=", most), "connections that one client keeps at "+address)
}

// open returns the number of connections that the other side has not closed.
func open(t *testing.T, conns []net.Conn) int {
	t.Helper()
	n := 0
	for _, conn := range conns {
		if err := conn.SetReadDeadline(time.Now().Add(time.Millisecond)); err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Read(make([]byte, 1)); errors.Is(err, os.ErrDeadlineExceeded) {
			n++
		}
	}
	return n
}
