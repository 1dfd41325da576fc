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

// outages holds which pods have been unreachable, and since when. It is safe for concurrent use;
// the zero value is ready to use.
type outages struct {
	mu    sync.Mutex
	known map[pod]outage
}

// pod is a pod that converts for a Deployment of a ClusterServiceVersion.
type pod struct {
	csv                 types.UID
	deployment, address string
}

// outage is the time of the first and of the last attempt to reach a pod.
type outage struct{ first, last time.Time }

// record records that a pod is unreachable, and returns how long it has been so.
func (o *outages) record(p pod, now time.Time) time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	maps.DeleteFunc(o.known, func(_ pod, of outage) bool { return now.Sub(of.last) > outageGap })
	if o.known == nil {
		o.known = map[pod]outage{}
	}
	of, known := o.known[p]
	if !known {
		of.first = now
	}
	of.last = now
	o.known[p] = of
	return now.Sub(of.first)
}

// end records that a pod is reachable.
func (o *outages) end(p pod) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.known, p)
}
