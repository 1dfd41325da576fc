package webhook

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
	// outageGap is the longest pause between two attempts of one series. Older attempts do not
	// concern the present pods.
	outageGap = 30 * time.Second
)

// unreachablePods holds which pods have been unreachable, and since when. It is safe for concurrent use;
// the zero value is ready to use.
type unreachablePods struct {
	mu    sync.Mutex
	known map[podKey]period
}

// podKey is a pod that converts for a Deployment of a ClusterServiceVersion.
type podKey struct {
	csv                 types.UID
	deployment, address string
}

// period is the time of the first and of the last attempt to reach a pod.
type period struct{ first, last time.Time }

// recordUnreachable records that a pod is unreachable, and returns how long it has been so.
func (u *unreachablePods) recordUnreachable(p podKey, now time.Time) time.Duration {
	u.mu.Lock()
	defer u.mu.Unlock()
	maps.DeleteFunc(u.known, func(_ podKey, of period) bool { return now.Sub(of.last) > outageGap })
	if u.known == nil {
		u.known = map[podKey]period{}
	}
	of, known := u.known[p]
	if !known {
		of.first = now
	}
	of.last = now
	u.known[p] = of
	return now.Sub(of.first)
}

// recordReachable records that a pod is reachable.
func (u *unreachablePods) recordReachable(p podKey) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.known, p)
}
