package bundleimage

import (
	"context"
	"sync"
)

// Limits of concurrent pulls: in total, which bounds their disk space, and for one registry, so that a slow
// registry does not block the others.
const (
	maxPulls        = 6
	maxPullsPerHost = 3
)

// Limits of concurrent requests that resolve a reference, likewise.
const (
	maxQueries        = 64
	maxQueriesPerHost = 8
)

// slots limit the number of concurrent operations.
type slots struct {
	max, perHost int

	mu    sync.Mutex
	taken int
	hosts map[string]int
	// freed is closed when a slot is released.
	freed chan struct{}
}

func newSlots(limit, perHost int) *slots {
	return &slots{max: limit, perHost: perHost, hosts: map[string]int{}, freed: make(chan struct{})}
}

// take waits for a slot. It returns a function that releases the slot.
func (s *slots) take(ctx context.Context, host string) (release func(), err error) {
	for {
		s.mu.Lock()
		if s.taken < s.max && s.hosts[host] < s.perHost {
			s.taken++
			s.hosts[host]++
			s.mu.Unlock()
			return func() { s.release(host) }, nil
		}
		freed := s.freed
		s.mu.Unlock()
		select {
		case <-freed:
		case <-ctx.Done():
			return nil, context.Cause(ctx) //nolint:wrapcheck // the caller says what it waited for
		}
	}
}

func (s *slots) release(host string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.taken--
	s.hosts[host]--
	if s.hosts[host] == 0 {
		delete(s.hosts, host)
	}
	close(s.freed)
	s.freed = make(chan struct{})
}
