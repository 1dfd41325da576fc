package catalogs

import (
	"testing"
	"time"

	"github.com/chandlery/chandlery/supervisor/catalogs/replicas"
)

func TestSessionSchedule(t *testing.T) {
	const refresh = 10 * time.Second
	r := sessionSchedule{}
	defer r.stop()
	for i, step := range []struct {
		epoch int
		ok    bool
		want  time.Duration // the pause after a failure
	}{
		{epoch: 1, want: retryContent},
		{epoch: 1, want: 2 * time.Second},
		{epoch: 1, want: 4 * time.Second},
		{epoch: 1, want: 8 * time.Second},
		{epoch: 1, want: refresh},
		{epoch: 1, want: refresh},
		{epoch: 2, want: retryContent}, // another replica
		{epoch: 2, want: 2 * time.Second},
		{epoch: 2, ok: true},
		{epoch: 2, want: retryContent},
	} {
		r.start(t.Context(), replicas.Summary{Epoch: step.epoch})
		r.finish(sessionResult{ok: step.ok, next: refresh}, refresh)
		if r.pause != step.want {
			t.Errorf("reading %d: again after %s, want %s", i, r.pause, step.want)
		}
	}
	short := sessionSchedule{}
	defer short.stop()
	for range 3 {
		short.start(t.Context(), replicas.Summary{Epoch: 1})
		short.finish(sessionResult{}, time.Millisecond)
	}
	if short.pause != retryContent {
		t.Errorf("again after %s although content is read more often anyway", short.pause)
	}
}
