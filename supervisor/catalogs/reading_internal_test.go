package catalogs

import (
	"testing"
	"time"

	"github.com/chandlery/chandlery/supervisor/catalogs/replicas"
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
		r.begin(t.Context(), replicas.Summary{Joined: step.joined})
		r.done(outcome{good: step.good, again: refresh}, refresh)
		if r.pause != step.want {
			t.Errorf("reading %d: again after %s, want %s", i, r.pause, step.want)
		}
	}
	short := reading{}
	defer short.stop()
	for range 3 {
		short.begin(t.Context(), replicas.Summary{Joined: 1})
		short.done(outcome{}, time.Millisecond)
	}
	if short.pause != retryContent {
		t.Errorf("again after %s although content is read more often anyway", short.pause)
	}
}
