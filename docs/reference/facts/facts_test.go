package facts

import "testing"

func TestUnit(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"a_duration_seconds": "seconds", "a_bytes": "bytes", "a_bytes_total": "bytes", "a_total": "number",
		"a_timestamp_seconds": "seconds since 1970",
	} {
		if got := (Metric{Name: name}).Unit(); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}
