package attack_test

import (
	"testing"

	"github.com/chandlery/chandlery/test/attack"
)

// TestGrowth has stages of which some shrink, which must not hide the growth of others. Growth
// beyond the limit and a lost Lease are errors.
func TestGrowth(t *testing.T) {
	const mebi = 1 << 20
	grown := func(filled, restarted int64) attack.Stage {
		return attack.Stage{Before: 20 * mebi, Filled: (20 + filled) * mebi, Restarted: (20 + restarted) * mebi}
	}
	for _, tt := range []struct {
		reason             string
		result             attack.Result
		running, restarted int64
		broken             bool
	}{
		{"nothing", attack.Result{}, 0, 0, false},
		{"growth", attack.Result{Stages: []attack.Stage{grown(3, 4), grown(5, 6)}}, 8, 10, false},
		{"a stage shrinks", attack.Result{Stages: []attack.Stage{grown(16, 17), grown(-15, -16), grown(14, 12)}}, 30, 29, true},
		{"another one after a restart", attack.Result{Stages: []attack.Stage{grown(-1, 31), grown(1, -9)}}, 1, 31, true},
		{"a lost lead", attack.Result{Lost: 1}, 0, 0, true},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			if running, restarted := tt.result.Growth(); running != tt.running*mebi || restarted != tt.restarted*mebi {
				t.Errorf("growth %d and %d MiB, want %d and %d", running/mebi, restarted/mebi, tt.running, tt.restarted)
			}
			if err := tt.result.Check(); (err != nil) != tt.broken {
				t.Errorf("error %v, want one: %t", err, tt.broken)
			}
		})
	}
}
