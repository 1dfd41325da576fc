// Package keylimit limits the number of concurrent operations, in total and for each key. A key with many operations, such
// as a slow host or a namespace, thus does not block those of other keys.
package keylimit

import (
	"context"
	"sync"
)

// Limiter limits the number of concurrent operations. It is safe for concurrent use.
type Limiter struct {
	max, perKey int

	mu    sync.Mutex
	taken int
	keys  map[string]int
	// released is closed when a slot is released.
	released chan struct{}
}

// New returns a Limiter of a number of operations in total, and for each key.
func New(limit, perKey int) *Limiter {
	return &Limiter{max: limit, perKey: perKey, keys: map[string]int{}, released: make(chan struct{})}
}

// Acquire waits for a slot. It returns a function that releases the slot.
func (l *Limiter) Acquire(ctx context.Context, key string) (release func(), err error) {
	for {
		release, released := l.take(key)
		if release != nil {
			return release, nil
		}
		select {
		case <-released:
		case <-ctx.Done():
			return nil, context.Cause(ctx) //nolint:wrapcheck // the caller adds what it waited for
		}
	}
}

// TryAcquire returns a function that releases a slot. It is nil if there is no slot.
func (l *Limiter) TryAcquire(key string) (release func()) {
	release, _ = l.take(key)
	return release
}

// take takes a slot. If there is none, the channel is closed when one is released.
func (l *Limiter) take(key string) (release func(), released <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.taken >= l.max || l.keys[key] >= l.perKey {
		return nil, l.released
	}
	l.taken++
	l.keys[key]++
	return func() { l.release(key) }, nil
}

func (l *Limiter) release(key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.taken--
	l.keys[key]--
	if l.keys[key] == 0 {
		delete(l.keys, key)
	}
	close(l.released)
	l.released = make(chan struct{})
}
