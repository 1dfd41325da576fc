package subscription

import (
	"testing"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
)

func TestCacheLagAfterConflicts(t *testing.T) {
	now := time.Date(2026, time.January, 1, 12, 0, 0, 0, time.UTC)
	var c cacheLag
	if _, waits := c.until(versioned("7"), now); waits {
		t.Error("a Subscription without a conflict waits")
	}
	if got := c.conflict(versioned("7"), now); got != now.Add(100*time.Millisecond) {
		t.Errorf("after the first conflict it waits %s", got.Sub(now))
	}
	if next, waits := c.until(versioned("7"), now.Add(99*time.Millisecond)); !waits || next != now.Add(100*time.Millisecond) {
		t.Errorf("before its time it waits: %t until %s", waits, next)
	}
	if _, waits := c.until(versioned("7"), now.Add(100*time.Millisecond)); waits {
		t.Error("it waits when its time has come")
	}
	if _, waits := c.until(versioned("8"), now); waits {
		t.Error("after one conflict it waits though the cache has another version")
	}
	for i, want := range []int{200, 400, 800, 1600, 3200, 6400, 12800, 25600, 30000, 30000} {
		if got := c.conflict(versioned("8"), now); got != now.Add(time.Duration(want)*time.Millisecond) {
			t.Errorf("after conflict %d it waits %s, want %d ms", i+2, got.Sub(now), want)
		}
	}
	if _, waits := c.until(versioned("9"), now.Add(29*time.Second)); !waits {
		t.Error("after several conflicts another late version is written at once")
	}
	c.wrote(versioned("9"), "9", now)
	if got := c.conflict(versioned("9"), now); got != now.Add(100*time.Millisecond) {
		t.Errorf("after a write that passed, a conflict waits %s", got.Sub(now))
	}
}

func TestCacheLagAfterWrites(t *testing.T) {
	now := time.Date(2026, time.January, 1, 12, 0, 0, 0, time.UTC)
	cases := map[string]struct {
		reason string
		cached string
		after  time.Duration
		waits  bool
	}{
		"Before":   {"the cache does not have the write", "9", 0, true},
		"Same":     {"the cache has the write", "10", 0, false},
		"Later":    {"the cache has a later one", "11", 0, false},
		"Late":     {"the event of the write never comes", "9", 30 * time.Second, false},
		"Unsorted": {"versions that are no numbers have no order", "a", 0, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var c cacheLag
			c.wrote(versioned("9"), "10", now)
			if _, waits := c.until(versioned(tc.cached), now.Add(tc.after)); waits != tc.waits {
				t.Errorf("%s: waits %t, want %t", tc.reason, waits, tc.waits)
			}
		})
	}
}

func TestCacheLagForgetsDeleted(t *testing.T) {
	now := time.Date(2026, time.January, 1, 12, 0, 0, 0, time.UTC)
	var c cacheLag
	sub := versioned("7")
	c.conflict(sub, now)
	c.retain(sub.Namespace, []*operatorsv1alpha1.Subscription{sub})
	if _, waits := c.until(sub, now); !waits {
		t.Error("the conflict of a Subscription that exists is forgotten")
	}
	c.retain(sub.Namespace, nil)
	if _, waits := c.until(sub, now); waits || len(c.last) > 0 {
		t.Errorf("the conflict of a Subscription that does not exist is kept: %v", c.last)
	}
}

func versioned(version string) *operatorsv1alpha1.Subscription {
	sub := subscription("my", "lamp")
	sub.ResourceVersion = version
	return sub
}
