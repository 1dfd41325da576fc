// Package cachelag detects objects whose cached version is older than the last write of this process.
package cachelag

import (
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// Limit is how long a cache counts as late after a write. An event that takes longer may never arrive.
const Limit = 30 * time.Second

// Tracker stores the versions that writes returned, until the cache has them. A reconciliation with an older
// version would repeat a write, and the API server would refuse it. A Tracker is safe for concurrent use; the
// zero value is ready.
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

// Forget drops the record of a deleted object.
func (t *Tracker) Forget(uid types.UID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.written, uid)
}
