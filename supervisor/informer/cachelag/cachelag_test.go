package cachelag_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chandlery/chandlery/supervisor/informer/cachelag"
)

func TestBehind(t *testing.T) {
	now := time.Date(2026, time.January, 1, 12, 0, 0, 0, time.UTC)
	object := func(uid, version string) *metav1.ObjectMeta {
		return &metav1.ObjectMeta{UID: types.UID(uid), ResourceVersion: version}
	}
	cases := map[string]struct {
		reason string
		cached *metav1.ObjectMeta
		after  time.Duration
		want   bool
	}{
		"Older":    {"the event of the write is on its way", object("a", "9"), 0, true},
		"Same":     {"the cache has the write", object("a", "10"), 0, false},
		"Newer":    {"the cache has a later write of another client", object("a", "11"), 0, false},
		"Late":     {"an event may never come, such as after a restore", object("a", "9"), cachelag.Limit, false},
		"Another":  {"the object was recreated", object("b", "9"), 0, false},
		"Nonsense": {"versions that are no numbers have no order", object("a", "x"), 0, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var tracker cachelag.Tracker
			tracker.Wrote(object("a", "10"), now)
			if got := tracker.Behind(tc.cached, now.Add(tc.after)); got != tc.want {
				t.Errorf("%s: Behind() = %t, want %t", tc.reason, got, tc.want)
			}
		})
	}
}

func TestForgets(t *testing.T) {
	now := time.Date(2026, time.January, 1, 12, 0, 0, 0, time.UTC)
	var tracker cachelag.Tracker
	late, caughtUp := &metav1.ObjectMeta{UID: "a", ResourceVersion: "9"}, &metav1.ObjectMeta{UID: "a", ResourceVersion: "10"}
	tracker.Wrote(caughtUp, now)
	if tracker.Behind(caughtUp, now) || tracker.Behind(late, now) {
		t.Error("a write that the cache has is not forgotten")
	}
	tracker.Wrote(caughtUp, now)
	tracker.Forget("a")
	if tracker.Behind(late, now) {
		t.Error("an object that is gone is not forgotten")
	}
}
