package apply

import (
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Backoff is the pauses between failed attempts: First after the first failure, and twice the previous pause after
// each further one, at most Max.
type Backoff struct{ First, Max time.Duration }

// After returns the pause after a number of failures in a row; 0 after none.
func (b Backoff) After(failures int) time.Duration {
	if failures < 1 {
		return 0
	}
	const doublings = 16 // bounds the shift
	return min(b.First<<min(failures-1, doublings), b.Max)
}

const (
	initialBackoff = 5 * time.Millisecond
	// maxBackoff is the longest pause. The default is a quarter of an hour, which would be too long after an outage of
	// the API server of some minutes.
	maxBackoff = 15 * time.Second
)

// RateLimiter returns the rate limiter of controllers: a request is retried 5 ms after the first error, and after
// twice the previous pause for each further one, at most 15 s.
func RateLimiter() workqueue.TypedRateLimiter[reconcile.Request] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](initialBackoff, maxBackoff)
}
