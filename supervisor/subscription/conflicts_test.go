package subscription

import (
	"testing"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
)

func TestConflictsDelayWrites(t *testing.T) {
	now := time.Date(2026, time.January, 1, 12, 0, 0, 0, time.UTC)
	old, fresh := subscription("my", "lamp"), subscription("my", "lamp")
	old.ResourceVersion, fresh.ResourceVersion = "7", "8"
	var c conflicts
	if _, ok := c.delayed(old, now); ok {
		t.Error("a Subscription without a conflict is delayed")
	}
	want := []time.Duration{100, 200, 400, 800, 1600, 3200, 5000, 5000}
	for i, delay := range want {
		if got := c.note(old, now); got != now.Add(delay*time.Millisecond) {
			t.Errorf("conflict %d of one version: the next write is after %s, want %s", i+1, got.Sub(now), delay*time.Millisecond)
		}
	}
	if next, ok := c.delayed(old, now.Add(4999*time.Millisecond)); !ok || next != now.Add(5*time.Second) {
		t.Errorf("before its time a write is delayed: %t until %s", ok, next)
	}
	if _, ok := c.delayed(old, now.Add(5*time.Second)); ok {
		t.Error("a write is delayed when its time has come")
	}
	if _, ok := c.delayed(fresh, now); ok {
		t.Error("a write is delayed though the cache has another version")
	}
	if got := c.note(fresh, now); got != now.Add(100*time.Millisecond) {
		t.Errorf("the first conflict of another version: the next write is after %s", got.Sub(now))
	}
}

func TestConflictsAreForgotten(t *testing.T) {
	now := time.Date(2026, time.January, 1, 12, 0, 0, 0, time.UTC)
	cases := map[string]struct {
		reason  string
		present []*operatorsv1alpha1.Subscription
		kept    bool
	}{
		"Present": {"the cache has the refused version", []*operatorsv1alpha1.Subscription{versioned("7")}, true},
		"Changed": {"the cache has another version", []*operatorsv1alpha1.Subscription{versioned("8")}, false},
		"Deleted": {"the Subscription is deleted", nil, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var c conflicts
			c.note(versioned("7"), now)
			c.keep(versioned("7").Namespace, tc.present)
			if _, ok := c.delayed(versioned("7"), now); ok != tc.kept {
				t.Errorf("%s: delayed %t, want %t", tc.reason, ok, tc.kept)
			}
			if _, known := c.refused[versioned("7").Namespace]; known != tc.kept {
				t.Errorf("%s: the namespace is kept: %t, want %t", tc.reason, known, tc.kept)
			}
		})
	}
}

func versioned(version string) *operatorsv1alpha1.Subscription {
	sub := subscription("my", "lamp")
	sub.ResourceVersion = version
	return sub
}
