package testenv_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chandlery/chandlery/test/testenv"
)

// TestSample takes parts of a table with five cases.
func TestSample(t *testing.T) {
	all := map[string]int{"a": 1, "b": 2, "c": 3, "d": 4, "e": 5}
	for _, tt := range []struct {
		reason, share string
		want          map[string]int
	}{
		{"no variable", "", all},
		{"all", "1", all},
		{"every second one", "2", map[string]int{"a": 1, "c": 3, "e": 5}},
		{"a table is never left out", "9", map[string]int{"a": 1}},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			t.Setenv("CASE_SHARE", tt.share)
			if diff := cmp.Diff(tt.want, testenv.Sample(t, all)); diff != "" {
				t.Errorf("cases (-want +got):\n%s", diff)
			}
		})
	}
}
