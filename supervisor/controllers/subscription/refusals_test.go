package subscription

import (
	"testing"
	"time"
)

// TestRefusals checks when the obstacles to a return are checked again.
func TestRefusals(t *testing.T) {
	sub := subscription("my", "lamp", pinned("lamp.v1"))
	r, now := refusals{}, at(0).Time
	in := []string{"a is in the way"}
	for i, pause := range []int{1, 2, 4, 8, 16, 16} {
		until := r.note(sub, "v1", in, now)
		if got := until.Sub(now); got != time.Duration(pause)*time.Minute {
			t.Errorf("look %d: the next after %s, want %d minutes", i, got, pause)
		}
		if got, again := r.known(sub, "v1", until.Add(-time.Second)); len(got) != 1 || !again.Equal(until) {
			t.Errorf("look %d: forgotten before its time: %q", i, got)
		}
		if got, _ := r.known(sub, "v2", now); got != nil {
			t.Errorf("look %d: another wish is refused: %q", i, got)
		}
		if got, _ := r.known(sub, "v1", until); got != nil {
			t.Errorf("look %d: not looked at again", i)
		}
		now = until
	}
	if got := r.note(sub, "v2", in, now).Sub(now); got != time.Minute {
		t.Errorf("another wish is looked at again after %s", got)
	}
	if got := r.note(sub, "v2", nil, now); !got.IsZero() || len(r.made) != 0 {
		t.Errorf("nothing is in the way, and it is remembered until %s", got)
	}
}

// TestWish checks which changes lead to another wish.
func TestWish(t *testing.T) {
	seen := map[string]bool{}
	for _, pin := range []string{"lamp.v1", " lamp.v1", "lamp.v2"} {
		sub := subscription("my", "lamp", pinned(pin))
		o := observed(read(t), sub).with(nil)
		d := decided(t, o)[0]
		seen[d.wish()] = true
		o.identify(d)
		seen[d.wish()] = true
	}
	if len(seen) != 6 {
		t.Errorf("wishes %v", seen)
	}
}
