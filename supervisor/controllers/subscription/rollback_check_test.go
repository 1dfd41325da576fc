package subscription

import (
	"testing"
	"time"

	"github.com/chandlery/chandlery/supervisor/resolution"
)

// TestCheckBackOff checks when the blockers of a rollback are checked again.
func TestCheckBackOff(t *testing.T) {
	sub := subscription("my", "lamp", pinned("lamp.v1"))
	b, now := newCheckBackOff(), at(0).Time
	in := []string{"a is in the way"}
	for i, pause := range []int{1, 2, 4, 8, 16, 16} {
		until := b.record(sub, "v1", in, now)
		if got := until.Sub(now); got != time.Duration(pause)*time.Minute {
			t.Errorf("look %d: the next after %s, want %d minutes", i, got, pause)
		}
		if got, again := b.last(sub, "v1", until.Add(-time.Second)); len(got) != 1 || !again.Equal(until) {
			t.Errorf("look %d: forgotten before its time: %q", i, got)
		}
		if got, _ := b.last(sub, "v2", now); got != nil {
			t.Errorf("look %d: another key is refused: %q", i, got)
		}
		if got, _ := b.last(sub, "v1", until); got != nil {
			t.Errorf("look %d: not looked at again", i)
		}
		now = until
	}
	if got := b.record(sub, "v2", in, now).Sub(now); got != time.Minute {
		t.Errorf("another key is checked again after %s", got)
	}
	got := b.record(sub, "v2", nil, now)
	if _, until := b.checks.Last(sub.UID); !got.IsZero() || !until.IsZero() {
		t.Errorf("nothing is in the way, and it is remembered until %s", until)
	}
}

// TestRollbackKey checks which changes lead to another key.
func TestRollbackKey(t *testing.T) {
	seen := map[string]bool{}
	for _, pin := range []string{"lamp.v1", " lamp.v1", "lamp.v2"} {
		sub := subscription("my", "lamp", pinned(pin))
		o := observed(read(t), sub).with(nil)
		chosen := decide(t.Context(), o, resolution.Resolve)
		seen[chosen[0].rollbackKey()] = true
		seen[identified(chosen, o.catalogs, nil)[0].rollbackKey()] = true
	}
	if len(seen) != 6 {
		t.Errorf("keys %v", seen)
	}
}
