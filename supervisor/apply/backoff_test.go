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

func TestRetriesByKey(t *testing.T) {
	r := apply.Retries[string, int]{Backoff: apply.Backoff{First: time.Second, Max: 4 * time.Second}, Free: 1}
	begin := time.Date(2026, time.January, 1, 12, 0, 0, 0, time.UTC)
	now := begin
	for i, want := range []time.Duration{0, time.Second, 2 * time.Second, 4 * time.Second, 4 * time.Second} {
		until := r.Fail("a", i, now)
		if got := until.Sub(now); got != want {
			t.Errorf("after %d failures: %s, want %s", i+1, got, want)
		}
		if failure, last := r.Last("a"); failure != i || !last.Equal(until) {
			t.Errorf("the last failure is %d until %s, want %d until %s", failure, last, i, until)
		}
		if got := r.Pause("a", until.Add(-time.Millisecond)); want > 0 && got != time.Millisecond || r.Pause("a", until) != 0 {
			t.Errorf("after %d failures, %s are left a millisecond before the next try", i+1, got)
		}
		now = until.Add(4 * time.Second)
	}
	if failure, until := r.Last("b"); failure != 0 || !until.IsZero() {
		t.Errorf("another key failed with %d until %s", failure, until)
	}
	r.Forget("a")
	if failure, until := r.Last("a"); failure != 0 || !until.IsZero() {
		t.Errorf("a forgotten key failed with %d until %s", failure, until)
	}
	r.Fail("a", 1, begin)
	r.Fail("a", 2, begin)
	if got := r.Fail("a", 3, begin.Add(6*time.Second)); !got.Equal(begin.Add(6 * time.Second)) {
		t.Errorf("after a time without tries, the pause is %s", got.Sub(begin.Add(6*time.Second)))
	}
}
