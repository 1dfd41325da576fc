package clusterserviceversion

import (
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

const (
	// unreachableTime is how long no way to a webhook is taken for the webhook's
	// absence. After it, it is taken for a network policy that lets the API server
	// through and not us.
	unreachableTime = time.Minute
	// silenceGap is how long after one attempt another one still belongs to it. What was
	// tried longer ago says nothing of the pods that there are now.
	silenceGap = 30 * time.Second
)

// silences remembers since when there has been no way to which pods. Its methods may be
// called from any goroutine; the zero value is ready.
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

// lasts notes that there is no way to a pod, and says for how long there has been none.
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

// ends notes that there is a way to a pod.
func (s *silences) ends(l listener) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.known, l)
}
