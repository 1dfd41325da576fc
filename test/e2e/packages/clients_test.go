package packages_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/chandlery/chandlery/test/pause"
	"github.com/chandlery/chandlery/test/testenv"
)

const (
	// interval is the time between two calls of a client.
	interval = 100 * time.Millisecond
	// clientCount is the number of clients.
	clientCount = 20
)

// call is one list of all packages, and the version that it shows.
type call struct {
	begun   time.Time
	version string
	err     error
}

// clients list the packages through the API server all the time. They never repeat a failed call at once.
type clients struct {
	lists

	mu    sync.Mutex
	calls []call
}

// startClients starts clients, which stop when the test ends.
func startClients(t *testing.T, l lists) *clients {
	t.Helper()
	c := &clients{lists: l}
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	for range clientCount {
		running.Go(func() { c.run(ctx) })
	}
	t.Cleanup(func() {
		stop()
		running.Wait()
	})
	return c
}

// run calls until ctx ends.
func (c *clients) run(ctx context.Context) {
	for pause.For(ctx, interval) {
		one := call{begun: time.Now()}
		one.version, one.err = c.version(ctx)
		if ctx.Err() != nil {
			return
		}
		c.mu.Lock()
		c.calls = append(c.calls, one)
		c.mu.Unlock()
	}
}

// since returns the calls that began after a time, in the order in which they began.
func (c *clients) since(from time.Time) []call {
	c.mu.Lock()
	defer c.mu.Unlock()
	found := slices.DeleteFunc(slices.Clone(c.calls), func(one call) bool { return one.begun.Before(from) })
	slices.SortFunc(found, func(x, y call) int { return x.begun.Compare(y.begun) })
	return found
}

// failed returns the failed calls that began after a time.
func (c *clients) failed(from time.Time) []call {
	return slices.DeleteFunc(c.since(from), func(one call) bool { return one.err == nil })
}

// succeed waits until all calls of a span succeed.
func (c *clients) succeed(t *testing.T) {
	t.Helper()
	testenv.Until(t, testenv.Patience, "calls of both supervisors to succeed", func(context.Context) string {
		if failed := c.failed(time.Now().Add(-span)); len(failed) > 0 {
			return failed[len(failed)-1].err.Error()
		}
		return lackOf(len(c.since(time.Now().Add(-span))), clientCount)
	})
}
