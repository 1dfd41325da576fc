// Package retry says how soon controllers try again what failed.
package retry

import (
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

const (
	first = 5 * time.Millisecond
	// longest is the longest pause. By default it would be a quarter of an hour, and so
	// would be the wait after the API server was away for some minutes.
	longest = 15 * time.Second
)

// Limiter returns the pauses between tries of a request: 5 ms after the first error,
// doubled with each further one, 15 s at most.
func Limiter() workqueue.TypedRateLimiter[reconcile.Request] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](first, longest)
}
