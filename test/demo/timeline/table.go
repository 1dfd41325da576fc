package timeline

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// Summary is the result of one package's installation.
type Summary struct {
	// Package is the requested package. CSV is the resulting ClusterServiceVersion, if any.
	Package, CSV string
	// Phase and Reason come from the CSV, or describe the problem.
	Phase, Reason string
	// Took is the time from the Subscription to the result.
	Took time.Duration
	OK   bool
}

// Table formats the summaries, one row each, under a heading.
func (s Style) Table(rows []Summary) string {
	head := Summary{Package: "PACKAGE", CSV: "CSV", Phase: "PHASE", Reason: "REASON"}
	var pkg, csv, phase int
	for _, r := range append([]Summary{head}, rows...) {
		pkg = max(pkg, utf8.RuneCountInString(r.Package)+2)
		csv = max(csv, utf8.RuneCountInString(r.CSV)+2)
		phase = max(phase, utf8.RuneCountInString(r.Phase)+2)
	}
	var out strings.Builder
	write := func(r Summary, seconds, escape string) {
		front := pad(r.Package, pkg) + pad(r.CSV, csv)
		state := pad(r.Phase, phase)
		reason := r.Reason
		if s.Width > 0 {
			reason = cut(reason, max(0, s.Width-10-pkg-csv-phase))
		}
		fmt.Fprintf(&out, "%8s  %s%s%s\n", seconds, front, s.paint(escape, state), reason)
	}
	write(head, "SECONDS", bold)
	for _, r := range rows {
		escape := green
		if !r.OK {
			escape = red
		}
		write(r, fmt.Sprintf("%.1f", r.Took.Seconds()), escape)
	}
	return out.String()
}
