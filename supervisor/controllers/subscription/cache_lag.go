package subscription

import (
	"sync"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/chandlery/chandlery/supervisor/apply"
)

// maxCacheLag is for how long the cache may lack a write before it is written once more.
const maxCacheLag = 30 * time.Second

// conflictBackoff is the pauses between refused writes of a Subscription.
var conflictBackoff = apply.Backoff{First: afterConflict, Max: 30 * time.Second}

// cacheLag records the Subscriptions of which the cache has an older version than the API server.
// An API server under load sends events late, and each write from an old version costs it more
// time. It is safe for concurrent use; the zero value is ready to use.
type cacheLag struct {
	mu sync.Mutex
	// last holds the outcome of the last writes, by namespace and name.
	last map[string]map[string]lastWrite
}

// lastWrite is the outcome of the last writes of a Subscription.
type lastWrite struct {
	// version is the resourceVersion that the API server returned at that time; empty if it refused
	// the write.
	version string
	at      time.Time
	// refused is the outdated resourceVersion of a refused write. conflicts is the number of
	// refused writes in a row, and next the time of the next write.
	refused   string
	conflicts int
	next      time.Time
}

// wrote records the version that the API server returned for a write.
func (c *cacheLag) wrote(sub *operatorsv1alpha1.Subscription, version string, now time.Time) {
	c.set(sub, func(lastWrite) lastWrite { return lastWrite{version: version, at: now} })
}

// conflict records that the API server refused a write of the cached version, and returns when to
// write again.
func (c *cacheLag) conflict(sub *operatorsv1alpha1.Subscription, now time.Time) time.Time {
	return c.set(sub, func(last lastWrite) lastWrite {
		conflicts := last.conflicts + 1
		return lastWrite{refused: sub.ResourceVersion, conflicts: conflicts, next: now.Add(conflictBackoff.After(conflicts))}
	}).next
}

func (c *cacheLag) set(sub *operatorsv1alpha1.Subscription, change func(lastWrite) lastWrite) lastWrite {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.last == nil {
		c.last = map[string]map[string]lastWrite{}
	}
	if c.last[sub.Namespace] == nil {
		c.last[sub.Namespace] = map[string]lastWrite{}
	}
	changed := change(c.last[sub.Namespace][sub.Name])
	c.last[sub.Namespace][sub.Name] = changed
	return changed
}

// until returns when a Subscription is to be written next unless the cache changes before. ok is
// false when it may be written now.
func (c *cacheLag) until(sub *operatorsv1alpha1.Subscription, now time.Time) (next time.Time, ok bool) {
	c.mu.Lock()
	last := c.last[sub.Namespace][sub.Name]
	c.mu.Unlock()
	switch {
	case last.version != "" && older(sub.ResourceVersion, last.version):
		next = last.at.Add(maxCacheLag)
	case last.conflicts == 1 && last.refused != sub.ResourceVersion:
		// The missing event has arrived.
	case last.conflicts > 0:
		next = last.next
	}
	return next, now.Before(next)
}

// retain drops the records of a namespace except those of the given Subscriptions.
func (c *cacheLag) retain(namespace string, subs []*operatorsv1alpha1.Subscription) {
	c.mu.Lock()
	defer c.mu.Unlock()
	kept := map[string]lastWrite{}
	for _, sub := range subs {
		if last, known := c.last[namespace][sub.Name]; known {
			kept[sub.Name] = last
		}
	}
	if len(kept) == 0 {
		delete(c.last, namespace)
		return
	}
	c.last[namespace] = kept
}

// older reports whether a resourceVersion is older than another one of the same kind. It returns
// false for versions that cannot be compared.
func older(version, than string) bool {
	order, err := resourceversion.CompareResourceVersion(version, than)
	return err == nil && order < 0
}
