package apply

import (
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

const (
	initialBackoff = 5 * time.Millisecond
	// maxBackoff is the longest pause. The default is a quarter of an hour, which would be too long after an outage of
	// the API server of some minutes.
	maxBackoff = 15 * time.Second
)

// Backoff returns the rate limiter of controllers: a request is retried 5 ms after the first error, and after twice
// the previous pause for each further one, at most 15 s.
func Backoff() workqueue.TypedRateLimiter[reconcile.Request] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](initialBackoff, maxBackoff)
}
