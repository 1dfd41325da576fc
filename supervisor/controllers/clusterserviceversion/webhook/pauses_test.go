package webhook

import (
	"testing"
	"time"
)

// TestPausesGrow performs a Switch whenever it is allowed, for a day.
func TestPausesGrow(t *testing.T) {
	var s switches
	g, now, times := generation{"uid-1", 1}, noon(), 0
	for now.Before(noon().Add(24 * time.Hour)) {
		if pause := s.pause(g, now); pause > longestPause {
			t.Fatalf("a pause of %s", pause)
		} else if pause == 0 {
			s.record(g, now)
			times++
		}
		if times == freeSwitches-1 && s.pause(g, now) != 0 {
			t.Error("an upgrade is held up")
		}
		now = now.Add(time.Second)
	}
	if most := 24*12 + 2*freeSwitches + 10; times > most {
		t.Errorf("switched %d times in a day, want %d at most", times, most)
	}
	if s.pause(g, now) == 0 && s.pause(g, now.Add(-time.Second)) == 0 {
		t.Error("the next time needs no pause")
	}
	if pause := s.pause(generation{"uid-1", 2}, now); pause != 0 {
		t.Errorf("a new generation pauses for %s", pause)
	}
	if pause := s.pause(g, now.Add(2*longestPause+time.Minute)); pause != 0 {
		t.Errorf("after a time without actions, the pause is %s", pause)
	}
}
