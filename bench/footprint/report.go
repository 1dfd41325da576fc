package main

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// The limits of growth.
const (
	maxBinary = 6_000_000
	maxMemory = 6 << 20
)

// row is a line of the report. limit is the largest growth; zero for none.
type row struct {
	figure figure
	name   string
	show   func(int64) string
	limit  int64
}

func rows() []row {
	return []row{
		{supervisorBinary, "binary of the supervisor", megabytes, maxBinary},
		{registryBinary, "binary of the registry", megabytes, maxBinary},
		{supervisorRSS, "supervisor at rest, RSS", mebibytes, maxMemory},
		{supervisorPrivate, "of which private", mebibytes, 0},
		{registryRSS, "registry at rest, RSS", mebibytes, maxMemory},
		{succeeded, "from the Subscription to Succeeded", milliseconds, 0},
	}
}

func megabytes(bytes int64) string { return fmt.Sprintf("%.1f MB", float64(bytes)/1e6) }

func mebibytes(bytes int64) string { return fmt.Sprintf("%.1f MiB", float64(bytes)/(1<<20)) }

func milliseconds(nanoseconds int64) string {
	return time.Duration(nanoseconds).Round(time.Millisecond).String()
}

// report returns the medians as a table, and the names of the figures that have grown beyond their limit.
func report(base string, all [2][]values) (text string, missed []string) {
	var out strings.Builder
	fmt.Fprintf(&out, "Medians of %d rounds.\n\n| Figure | %s | Now | More | Target |\n|---|---|---|---|---|\n", len(all[0]), base)
	for _, r := range rows() {
		before, now := median(all[0], r.figure), median(all[1], r.figure)
		target := ""
		if r.limit > 0 {
			target = "at most " + r.show(r.limit)
			if now-before > r.limit {
				target += ", missed"
				missed = append(missed, r.name)
			}
		}
		fmt.Fprintf(&out, "| %s | %s | %s | %s | %s |\n", r.name, r.show(before), r.show(now), r.show(now-before), target)
	}
	return out.String(), missed
}

// median returns the median of a figure.
func median(all []values, f figure) int64 {
	sorted := make([]int64, 0, len(all))
	for _, v := range all {
		sorted = append(sorted, v[f])
	}
	slices.Sort(sorted)
	return sorted[len(sorted)/2]
}
