package main

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"
)

// The targets.
const (
	targetSucceeded = time.Second
	targetRatio     = 2.0
)

// percentile returns the value that p percent of the values do not exceed.
func percentile(values []time.Duration, p int) time.Duration {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	return sorted[min(len(sorted)-1, len(sorted)*p/100)]
}

// markdown returns the report.
func (f *figures) markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d cores; %s; one supervisor.\n\n", runtime.NumCPU(), runtime.Version())
	round := func(d time.Duration) time.Duration { return d.Round(100 * time.Microsecond) }
	fmt.Fprintf(&b, "From an available Deployment to a version that has Succeeded, of %d (limit: %s): median %s, longest %s.\n\n",
		len(f.succeeded), targetSucceeded, round(percentile(f.succeeded, 50)), round(slices.Max(f.succeeded)))
	fmt.Fprintf(&b, "A version with %d custom resources was deleted after %s.\n\n", f.o.objects, f.removal.Round(time.Second))
	b.WriteString("| Requests of another client | number | median | p99 | longest |\n|---|---|---|---|---|\n")
	for _, row := range []struct {
		name   string
		values []time.Duration
	}{{"before", f.before}, {"during the removal", f.during}} {
		fmt.Fprintf(&b, "| %s | %d | %s | %s | %s |\n", row.name, len(row.values),
			round(percentile(row.values, 50)), round(percentile(row.values, 99)), round(percentile(row.values, 100)))
	}
	ratio := float64(percentile(f.during, 99)) / float64(percentile(f.before, 99))
	fmt.Fprintf(&b, "\np99 during the removal is %.2f times p99 before it (limit: %.0f).\n", ratio, targetRatio)
	return b.String()
}
