package main

import (
	"fmt"
	"math"
	"slices"
	"time"
)

// missing stands for an unavailable figure.
const missing = "n/a"

// sample is a figure of several rounds.
type sample []float64

// median returns the median, or NaN for an empty sample.
func (s sample) median() float64 {
	if len(s) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(s))
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}

// over returns the median of the ratios round by round, so a temporary disturbance affects both. If
// the numbers of rounds differ, it returns the ratio of the medians.
func (s sample) over(other sample) float64 {
	if len(s) != len(other) {
		return s.median() / other.median()
	}
	ratios := make(sample, len(s))
	for i := range s {
		ratios[i] = s[i] / other[i]
	}
	return ratios.median()
}

// text returns the median and, for several rounds, the extremes.
func (s sample) text(format func(float64) string) string {
	switch len(s) {
	case 0:
		return missing
	case 1:
		return format(s[0])
	}
	return fmt.Sprintf("%s (%s–%s)", format(s.median()), format(slices.Min(s)), format(slices.Max(s)))
}

// seconds formats a duration in seconds with three digits.
func seconds(s float64) string {
	switch {
	case math.IsNaN(s):
		return missing
	case s >= 1:
		return fmt.Sprintf("%.3g s", s)
	case s >= 1e-3:
		return fmt.Sprintf("%.3g ms", s*1e3)
	default:
		return fmt.Sprintf("%.3g µs", s*1e6)
	}
}

// bytesText formats a number of bytes.
func bytesText(n float64) string {
	switch {
	case math.IsNaN(n):
		return missing
	case n >= 1<<30:
		return fmt.Sprintf("%.3g GiB", n/(1<<30))
	case n >= 1<<20:
		return fmt.Sprintf("%.1f MiB", n/(1<<20))
	case n >= 1<<10:
		return fmt.Sprintf("%.1f KiB", n/(1<<10))
	default:
		return fmt.Sprintf("%.0f B", n)
	}
}

// perSecond formats a rate.
func perSecond(n float64) string { return fmt.Sprintf("%.0f/s", n) }

// times formats a ratio.
func times(ratio float64) string {
	switch {
	case math.IsNaN(ratio):
		return missing
	case math.IsInf(ratio, 0):
		return "∞"
	}
	return fmt.Sprintf("%.3g", ratio)
}

// percentile returns the value at the share p (0 to 1) of sorted durations, in seconds.
func percentile(sorted []time.Duration, p float64) float64 {
	if len(sorted) == 0 {
		return math.NaN()
	}
	at := min(int(p*float64(len(sorted))), len(sorted)-1)
	return sorted[at].Seconds()
}
