package bundleimage

import (
	"context"
	"sync"
)

// Limits of concurrent pulls: in total, which bounds their disk space; for one registry, so that a slow registry does not
// block the others; and for one catalog and one namespace of catalogs, whose images can be in many slow registries.
const (
	maxPulls             = 6
	maxPullsPerHost      = 3
	maxPullsPerCatalog   = 4
	maxPullsPerNamespace = 5
)

// Limits of concurrent requests that resolve a reference.
const (
	maxQueries        = 64
	maxQueriesPerHost = 8
)

// limiter limits the number of concurrent operations.
type limiter struct {
	max, perHost int

	mu    sync.Mutex
	taken int
	hosts map[string]int
	// released is closed when a slot is released.
	released chan struct{}
}

func newLimiter(limit, perHost int) *limiter {
	return &limiter{max: limit, perHost: perHost, hosts: map[string]int{}, released: make(chan struct{})}
}

// acquire waits for a slot. It returns a function that releases the slot.
func (l *limiter) acquire(ctx context.Context, host string) (release func(), err error) {
	for {
		l.mu.Lock()
		if l.taken < l.max && l.hosts[host] < l.perHost {
			l.taken++
			l.hosts[host]++
			l.mu.Unlock()
			return func() { l.release(host) }, nil
		}
		released := l.released
		l.mu.Unlock()
		select {
		case <-released:
		case <-ctx.Done():
			return nil, context.Cause(ctx) //nolint:wrapcheck // the caller says what it waited for
		}
	}
}

func (l *limiter) release(host string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.taken--
	l.hosts[host]--
	if l.hosts[host] == 0 {
		delete(l.hosts, host)
	}
	close(l.released)
	l.released = make(chan struct{})
}
