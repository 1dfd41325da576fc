// Package cachelag tells objects whose cached version is older than what this process wrote.
package cachelag

import (
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// Limit is for how long a cache counts as late after a write. An event that takes longer may never come.
const Limit = 30 * time.Second

// Tracker remembers the versions that writes returned, until the cache has them. A pass over an older
// version would write what is written already, and be refused. It is safe for concurrent use; the zero
// value is ready.
type Tracker struct {
	mu      sync.Mutex
	written map[types.UID]write
}

type write struct {
	version string
	at      time.Time
}

// Wrote records the object that the API server returned for a write.
func (t *Tracker) Wrote(o metav1.Object, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.written == nil {
		t.written = map[types.UID]write{}
	}
	t.written[o.GetUID()] = write{version: o.GetResourceVersion(), at: now}
}

// Behind reports whether the cache has an object in an older version than the last write returned.
func (t *Tracker) Behind(o metav1.Object, now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	last, known := t.written[o.GetUID()]
	if !known {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(o.GetResourceVersion(), last.version)
	if err == nil && order < 0 && now.Sub(last.at) < Limit {
		return true
	}
	delete(t.written, o.GetUID())
	return false
}

// Forget drops what is remembered of an object that is gone.
func (t *Tracker) Forget(uid types.UID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.written, uid)
}
