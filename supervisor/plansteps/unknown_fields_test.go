package plansteps

import (
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestKeepUnknown covers fields that a Go type lacks, and names that differ in case.
func TestKeepUnknown(t *testing.T) {
	t.Parallel()
	normal := map[string]any{"name": "lamp", "inner": map[string]any{"a": "1"}}
	keepUnknown(normal, map[string]any{
		"name": "lamp", "NAME": "other", "naſt": "x", "Extra": "y", "extra": "z", "empty": "", "inner": map[string]any{"a": "1", "b": "2"},
	})
	want := map[string]any{"name": "lamp", "naſt": "x", "Extra": "y", "extra": "z", "inner": map[string]any{"a": "1", "b": "2"}}
	if diff := cmp.Diff(want, normal); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestFolded(t *testing.T) {
	t.Parallel()
	for _, pair := range [][2]string{{"displayName", "DISPLAYname"}, {"kind", "\u212Aind"}, {"spec", "ſpec"}, {"a", "b"}, {"", ""}, {"Straße", "strasse"}} {
		if got, want := folded(pair[0]) == folded(pair[1]), strings.EqualFold(pair[0], pair[1]); got != want {
			t.Errorf("%q and %q are equal: %v, want %v", pair[0], pair[1], got, want)
		}
	}
}

// BenchmarkKeepUnknown has a manifest with very many unknown fields. The time for each field must not grow with their number.
func BenchmarkKeepUnknown(b *testing.B) {
	for _, n := range []int{1_000, 100_000} {
		raw := make(map[string]any, n)
		for i := range n {
			raw["unknown"+strconv.Itoa(i)] = int64(1)
		}
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			for b.Loop() {
				keepUnknown(map[string]any{"name": "lamp"}, raw)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/field")
		})
	}
}
