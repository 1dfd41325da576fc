package webhook

import (
	"testing"
	"time"
)

// TestPausesGrow performs a Switch whenever it is allowed, for a day.
func TestPausesGrow(t *testing.T) {
	s := newSwitchCounter()
	g, now, times := generation{"uid-1", 1}, noon(), 0
	for now.Before(noon().Add(24 * time.Hour)) {
		if pause := s.Pause(g, now); pause > longestPause {
			t.Fatalf("a pause of %s", pause)
		} else if pause == 0 {
			s.Fail(g, struct{}{}, now)
			times++
		}
		if times == switchesWithoutPause-1 && s.Pause(g, now) != 0 {
			t.Error("an upgrade is held up")
		}
		now = now.Add(time.Second)
	}
	if most := 24*12 + 2*switchesWithoutPause + 10; times > most {
		t.Errorf("switched %d times in a day, want %d at most", times, most)
	}
	if s.Pause(g, now) == 0 && s.Pause(g, now.Add(-time.Second)) == 0 {
		t.Error("the next time needs no pause")
	}
	if pause := s.Pause(generation{"uid-1", 2}, now); pause != 0 {
		t.Errorf("a new generation pauses for %s", pause)
	}
	if pause := s.Pause(g, now.Add(2*longestPause+time.Minute)); pause != 0 {
		t.Errorf("after a time without actions, the pause is %s", pause)
	}
}
