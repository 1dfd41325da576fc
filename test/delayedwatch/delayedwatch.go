// Package delayedwatch delays the events of a client's watches, to simulate a cache that lags behind the API server.
package delayedwatch

import (
	"io"
	"net/http"
	"path"
	"sync"
)

// Gate delays the watches of one resource. Create one with [New].
type Gate struct {
	resource string

	mu sync.Mutex
	// closed is nil while watches deliver events. Otherwise it is closed when they do so again.
	closed chan struct{}
}

// New returns an open gate for a resource, such as "operatorgroups".
func New(resource string) *Gate { return &Gate{resource: resource} }

// Hold delays the events of the watches until release is called.
func (g *Gate) Hold() (release func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	closed := make(chan struct{})
	g.closed = closed
	return sync.OnceFunc(func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		close(closed)
		g.closed = nil
	})
}

// Wrap returns a transport whose watches pass through the gate.
func (g *Gate) Wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		response, err := next.RoundTrip(r)
		if err == nil && r.URL.Query().Has("watch") && path.Base(r.URL.Path) == g.resource {
			response.Body = &body{ReadCloser: response.Body, gate: g, done: r.Context().Done()}
		}
		return response, err //nolint:wrapcheck // it stands for the other
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip calls the function.
func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// body is the reply to a watch.
type body struct {
	io.ReadCloser

	gate *Gate
	done <-chan struct{}
}

// Read waits until the gate is open or the request has ended, and reads.
func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.gate.mu.Lock()
	closed := b.gate.closed
	b.gate.mu.Unlock()
	if closed != nil {
		select {
		case <-closed:
		case <-b.done:
		}
	}
	return n, err //nolint:wrapcheck // io.Reader promises its own errors
}
