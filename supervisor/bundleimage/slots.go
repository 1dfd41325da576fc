package bundleimage

import (
	"context"
	"sync"
)

// How many images are pulled at a time: in all, which bounds the disk that they
// take, and from one registry, so that one that hangs does not keep others waiting.
const (
	maxPulls        = 6
	maxPullsPerHost = 3
)

// How many questions are asked at a time, likewise.
const (
	maxQuestions        = 64
	maxQuestionsPerHost = 8
)

// slots bound how much is done at a time.
type slots struct {
	max, perHost int

	mu    sync.Mutex
	taken int
	hosts map[string]int
	// freed is closed when a slot is given back.
	freed chan struct{}
}

func newSlots(limit, perHost int) *slots {
	return &slots{max: limit, perHost: perHost, hosts: map[string]int{}, freed: make(chan struct{})}
}

// take waits for a slot. What it returns gives it back.
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
