// Package forwarder forwards connections to a server, for tests of a server or a network that stops to answer.
package forwarder

import (
	"context"
	"net"
	"sync"
	"testing"
)

// Forwarder forwards connections to a server. While it is stopped, it sends nothing on and closes no connection, like a
// process after SIGSTOP or the failed network of a node.
type Forwarder struct {
	// Address is the address that it listens at.
	Address string

	// stopped is locked while the Forwarder is stopped.
	stopped sync.RWMutex
}

// Start forwards connections to a server until the test ends.
func Start(t *testing.T, target string) *Forwarder {
	t.Helper()
	var lc net.ListenConfig
	listener, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f := &Forwarder{Address: listener.Addr().String()}
	var running sync.WaitGroup
	t.Cleanup(func() {
		_ = listener.Close()
		running.Wait()
	})
	running.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			var d net.Dialer
			server, err := d.DialContext(context.WithoutCancel(t.Context()), "tcp", target)
			if err != nil {
				_ = client.Close()
				continue
			}
			running.Go(func() { f.pass(client, server) })
			running.Go(func() { f.pass(server, client) })
		}
	})
	return f
}

// Stop holds back all data.
func (f *Forwarder) Stop() { f.stopped.Lock() }

// Resume sends on what Stop has held back.
func (f *Forwarder) Resume() { f.stopped.Unlock() }

func (f *Forwarder) pass(from, to net.Conn) {
	defer to.Close()   //nolint:errcheck // the other end notices
	defer from.Close() //nolint:errcheck // the other end notices
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if err != nil {
			return
		}
		f.stopped.RLock()
		_, err = to.Write(buffer[:n])
		f.stopped.RUnlock()
		if err != nil {
			return
		}
	}
}
