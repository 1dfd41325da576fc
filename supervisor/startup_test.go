package supervisor

import (
	"testing"
	"time"
)

// TestStuckFor checks that caches which take long to fill do not count as stuck: a tenant may have stored much.
func TestStuckFor(t *testing.T) {
	begun := time.Unix(1000, 0)
	for name, tc := range map[string]struct {
		lastPage     time.Time
		now          time.Duration
		sinceFailure time.Duration
		want         time.Duration
	}{
		"nothing was read":                      {now: 3 * time.Minute, sinceFailure: time.Hour, want: 3 * time.Minute},
		"a page was read a moment ago":          {now: 3 * time.Minute, sinceFailure: time.Hour, lastPage: begun.Add(170 * time.Second), want: 10 * time.Second},
		"an older process of the test has read": {now: time.Minute, sinceFailure: time.Hour, lastPage: begun.Add(-time.Minute), want: time.Minute},
		"the API server has just come back":     {now: time.Hour, sinceFailure: time.Second, want: time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			if got := stuckFor(begun, tc.lastPage, begun.Add(tc.now), tc.sinceFailure); got != tc.want {
				t.Errorf("stuck for %s, want %s", got, tc.want)
			}
		})
	}
}
