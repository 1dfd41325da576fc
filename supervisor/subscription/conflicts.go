package subscription

import (
	"sync"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
)

// maxConflictDelay is the longest pause between two writes from the same cached version.
const maxConflictDelay = 5 * time.Second

// conflicts delays the writes of Subscriptions whose cached version the API server refused. An
// API server under load sends events late, and each write from an old version costs it more time.
// It is safe for concurrent use.
type conflicts struct {
	mu sync.Mutex
	// refused are the last conflicts by namespace and name.
	refused map[string]map[string]conflict
}

// conflict is a version of a Subscription that the API server no longer has.
type conflict struct {
	version string
	delay   time.Duration
	next    time.Time
}

// note records that the API server refused a write of the cached version, and returns when to
// write next unless the cache changes before.
func (c *conflicts) note(sub *operatorsv1alpha1.Subscription, now time.Time) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.refused == nil {
		c.refused = map[string]map[string]conflict{}
	}
	if c.refused[sub.Namespace] == nil {
		c.refused[sub.Namespace] = map[string]conflict{}
	}
	last := c.refused[sub.Namespace][sub.Name]
	if last.version != sub.ResourceVersion {
		last = conflict{version: sub.ResourceVersion, delay: afterConflict / 2}
	}
	last.delay = min(2*last.delay, maxConflictDelay)
	last.next = now.Add(last.delay)
	c.refused[sub.Namespace][sub.Name] = last
	return last.next
}

// delayed returns when a Subscription is to be written next; ok is false when it may be written
// now.
func (c *conflicts) delayed(sub *operatorsv1alpha1.Subscription, now time.Time) (next time.Time, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	last, known := c.refused[sub.Namespace][sub.Name]
	if !known || last.version != sub.ResourceVersion || !now.Before(last.next) {
		return time.Time{}, false
	}
	return last.next, true
}

// keep forgets all Subscriptions of a namespace but the given ones.
func (c *conflicts) keep(namespace string, subs []*operatorsv1alpha1.Subscription) {
	c.mu.Lock()
	defer c.mu.Unlock()
	kept := map[string]conflict{}
	for _, sub := range subs {
		if last, known := c.refused[namespace][sub.Name]; known && last.version == sub.ResourceVersion {
			kept[sub.Name] = last
		}
	}
	if len(kept) == 0 {
		delete(c.refused, namespace)
		return
	}
	c.refused[namespace] = kept
}
