// Package retry limits how soon controllers retry a failed request.
package retry

import (
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

const (
	first = 5 * time.Millisecond
	// longest is the longest pause. The default is a quarter of an hour, which would be too long after an outage of
	// the API server of some minutes.
	longest = 15 * time.Second
)

// Limiter returns the pauses between attempts for a request: 5 ms after the first error, doubled with each
// further one, at most 15 s.
func Limiter() workqueue.TypedRateLimiter[reconcile.Request] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](first, longest)
}
