package testenv

import (
	"maps"
	"slices"
	"testing"

	"github.com/chandlery/chandlery/test/sampling"
)

// Sample returns a fixed part of the cases of a table: one in $CASE_SHARE, in the order of their names. Without that
// variable it returns all of them.
func Sample[Case any](t *testing.T, cases map[string]Case) map[string]Case {
	t.Helper()
	sample := map[string]Case{}
	for _, name := range sampling.OneIn(t, "CASE_SHARE", slices.Sorted(maps.Keys(cases))) {
		sample[name] = cases[name]
	}
	return sample
}
