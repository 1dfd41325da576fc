package testenv

import (
	"cmp"
	"maps"
	"os"
	"slices"
	"strconv"
	"testing"
)

// Sample returns a fixed part of the cases of a table: one in $CASE_SHARE, in the order of their names. Without that
// variable it returns all of them.
func Sample[Case any](t *testing.T, cases map[string]Case) map[string]Case {
	t.Helper()
	text := cmp.Or(os.Getenv("CASE_SHARE"), "1")
	share, err := strconv.Atoi(text)
	if err != nil || share < 1 {
		t.Fatalf("$CASE_SHARE is %q; it has to be a number from 1 on", text)
	}
	sample := map[string]Case{}
	for i, name := range slices.Sorted(maps.Keys(cases)) {
		if i%share == 0 {
			sample[name] = cases[name]
		}
	}
	return sample
}
