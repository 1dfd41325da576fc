package apply

import (
	"maps"
	"sync"
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

// Retries holds the failures in a row of each key, and when to try again. A key that was not tried for Max after that
// time has no failures any more. Retries is safe for concurrent use.
type Retries[K comparable, V any] struct {
	Backoff

	// Free is the number of failures in a row without a pause.
	Free int

	mu     sync.Mutex
	failed map[K]failures[V]
}

// failures are the failures in a row of one key.
type failures[V any] struct {
	count int
	last  V
	until time.Time
}

// Fail records a failure of a key, and returns when to try again.
func (r *Retries[K, V]) Fail(key K, failure V, now time.Time) time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	maps.DeleteFunc(r.failed, func(_ K, f failures[V]) bool { return now.Sub(f.until) > r.Max })
	if r.failed == nil {
		r.failed = map[K]failures[V]{}
	}
	count := r.failed[key].count + 1
	until := now.Add(r.After(count - r.Free))
	r.failed[key] = failures[V]{count: count, last: failure, until: until}
	return until
}

// Pause returns how much longer to wait before the next try.
func (r *Retries[K, V]) Pause(key K, now time.Time) time.Duration {
	_, until := r.Last(key)
	return max(0, until.Sub(now))
}

// Last returns the last failure of a key, and when to try again, which may be past. Both are zero without a failure.
func (r *Retries[K, V]) Last(key K) (failure V, until time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f := r.failed[key]
	return f.last, f.until
}

// Forget drops the failures of a key.
func (r *Retries[K, V]) Forget(key K) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.failed, key)
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
