package apply_test

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/chandlery/chandlery/supervisor/apply"
)

func TestRateLimiterIsBounded(t *testing.T) {
	l := apply.RateLimiter()
	failing := reconcile.Request{NamespacedName: types.NamespacedName{Name: "failing"}}
	var last time.Duration
	for range 100 {
		pause := l.When(failing)
		if pause < last {
			t.Errorf("a pause of %s after one of %s", pause, last)
		}
		last = pause
	}
	if last != 15*time.Second {
		t.Errorf("after a hundred errors the pause is %s, not 15s", last)
	}
	if pause := l.When(reconcile.Request{}); pause != 5*time.Millisecond {
		t.Errorf("another request pauses %s after its first error, not 5ms", pause)
	}
}

func TestBackoffDoubles(t *testing.T) {
	b := apply.Backoff{First: time.Second, Max: 5 * time.Minute}
	for failures, want := range map[int]time.Duration{
		-1: 0, 0: 0, 1: time.Second, 2: 2 * time.Second, 5: 16 * time.Second, 9: 256 * time.Second, 10: 5 * time.Minute, 1 << 40: 5 * time.Minute,
	} {
		if got := b.After(failures); got != want {
			t.Errorf("after %d failures: %s, want %s", failures, got, want)
		}
	}
}
