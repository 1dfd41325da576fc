package compattest

import (
	"testing"

	"github.com/chandlery/chandlery/test/compat/rules"
)

// TestInSample counts the rules in samples.
func TestInSample(t *testing.T) {
	t.Parallel()
	all := 0
	for _, g := range rules.All() {
		all += len(g.Rules)
	}
	for name, tt := range map[string]struct {
		share       uint8
		least, most int
	}{
		"Unset":  {0, all, all},
		"All":    {1, all, all},
		"Fourth": {4, all / 5, all / 3},
	} {
		n := 0
		for _, g := range rules.All() {
			for _, r := range g.Rules {
				if inSample(r.ID, tt.share) {
					n++
				}
			}
		}
		if n < tt.least || n > tt.most {
			t.Errorf("%s: %d of %d rules, want %d to %d", name, n, all, tt.least, tt.most)
		}
	}
}
