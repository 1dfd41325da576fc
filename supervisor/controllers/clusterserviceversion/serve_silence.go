package clusterserviceversion

import (
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

const (
	// unreachableTime is how long an unreachable webhook counts as not running. After it, the
	// supervisor assumes a network policy that admits the API server only.
	unreachableTime = time.Minute
	// silenceGap is the longest pause between two attempts of one series. Older attempts do not
	// concern the present pods.
	silenceGap = 30 * time.Second
)

// silences holds which pods have been unreachable, and since when. It is safe for concurrent use;
// the zero value is ready to use.
type silences struct {
	mu    sync.Mutex
	known map[listener]silence
}

// listener is a pod that converts for a Deployment of a ClusterServiceVersion.
type listener struct {
	csv                 types.UID
	deployment, address string
}

type silence struct{ first, last time.Time }

// lasts records that a pod is unreachable, and returns how long it has been so.
func (s *silences) lasts(l listener, now time.Time) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.known, func(_ listener, heard silence) bool { return now.Sub(heard.last) > silenceGap })
	if s.known == nil {
		s.known = map[listener]silence{}
	}
	heard, known := s.known[l]
	if !known {
		heard.first = now
	}
	heard.last = now
	s.known[l] = heard
	return now.Sub(heard.first)
}

// ends records that a pod is reachable.
func (s *silences) ends(l listener) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.known, l)
}
