package catalogs

import (
	"testing"
	"time"
)

func TestReadingAgain(t *testing.T) {
	const refresh = 10 * time.Second
	r := reading{}
	defer r.stop()
	for i, step := range []struct {
		joined int
		good   bool
		want   time.Duration // the pause after a failure
	}{
		{joined: 1, want: retryContent},
		{joined: 1, want: 2 * time.Second},
		{joined: 1, want: 4 * time.Second},
		{joined: 1, want: 8 * time.Second},
		{joined: 1, want: refresh},
		{joined: 1, want: refresh},
		{joined: 2, want: retryContent}, // another replica
		{joined: 2, want: 2 * time.Second},
		{joined: 2, good: true},
		{joined: 2, want: retryContent},
	} {
		r.begin(step.joined)
		r.done(step.good, refresh)
		if r.pause != step.want {
			t.Errorf("reading %d: again after %s, want %s", i, r.pause, step.want)
		}
	}
	short := reading{}
	defer short.stop()
	for range 3 {
		short.begin(1)
		short.done(false, time.Millisecond)
	}
	if short.pause != retryContent {
		t.Errorf("again after %s although content is read more often anyway", short.pause)
	}
}
