package main

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"
)

const (
	micro = time.Microsecond
	milli = time.Millisecond
)

// markdown returns the report.
func (f *figures) markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d cores, on which %s processes ran or waited; %s; %d packages, %d bundles; each figure is the median of %d rounds.\n\n",
		runtime.NumCPU(), load(), runtime.Version(), f.packages, f.bundles, f.rounds)
	f.targets(&b)
	fmt.Fprintf(&b, "\n%d of the %d bundles with dependencies have no solution in this catalog, and of the 100 Subscriptions %d; "+
		"their times include the explanation. %s takes longest.\n", f.unmet, len(f.dependent), f.hundredUnmet, f.slowest)
	fmt.Fprintf(&b, "\nThe floor, a lookup of package, channel and head in maps, takes %s. "+
		"Resolution without dependencies takes %.0f times as long, with dependencies %.0f times.\n",
		text(f.floor), ratio(f.plain.at(0.5), f.floor), ratio(f.dependent.at(0.5), f.floor))
	b.WriteString("\n### Growth with the catalog\n\n" +
		"One Subscription, whose package and all that it needs are in every part of the catalog; larger catalogs are renamed copies.\n\n" +
		"| Size | Packages | Without dependencies | With dependencies | Heap of the snapshot |\n|---|---|---|---|---|\n")
	for _, p := range f.byCatalog {
		fmt.Fprintf(&b, "| %s | %d | %s | %s | %s |\n", p.name, p.packages, text(p.plain), text(p.dependent), megabytes(p.heap))
	}
	b.WriteString("\n### Growth with Subscriptions\n\n" +
		"Subscriptions to packages from all over the catalog, in one namespace.\n\n" +
		"| Subscriptions | Cold | For each | Unchanged | Without solution |\n|---|---|---|---|---|\n")
	for _, p := range f.bySubscriptions {
		fmt.Fprintf(&b, "| %d | %s | %s | %s | %d |\n", p.subscriptions, text(p.cold),
			text(p.cold/time.Duration(p.subscriptions)), text(p.memo), p.unmet)
	}
	return b.String()
}

// load returns the load average of the last minute.
func load() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "an unknown number of"
	}
	mean, _, _ := strings.Cut(string(text), " ")
	return mean
}

// targets writes the table of the targets.
func (f *figures) targets(b *strings.Builder) {
	b.WriteString("| Figure | Target | Measured | Holds |\n|---|---|---|---|\n")
	row := func(what string, target, got time.Duration) {
		fmt.Fprintf(b, "| %s | less than %s | %s | %s |\n", what, text(target), text(got), answer(got < target))
	}
	for _, quantile := range []struct {
		name  string
		share float64
	}{{"median", 0.5}, {"p99", 0.99}, {"longest", 1}} {
		row("one Subscription without dependencies, cold, "+quantile.name, milli, f.plain.at(quantile.share))
		row("one Subscription with dependencies, cold, "+quantile.name, 5*milli, f.dependent.at(quantile.share))
	}
	row("100 Subscriptions in one namespace, cold", 100*milli, f.hundred)
	row("unchanged, one Subscription", 10*micro, f.memoOne)
	row("unchanged, 100 Subscriptions", 10*micro, f.memoHundred)
	const budget = 20_000_000
	fmt.Fprintf(b, "| heap of the snapshot | less than %s | %s | %s |\n", megabytes(budget), megabytes(f.heap), answer(f.heap < budget))
}

func answer(holds bool) string {
	if holds {
		return "yes"
	}
	return "**no**"
}

func ratio(a, b time.Duration) float64 { return float64(a) / float64(max(b, 1)) }

// text formats a time with three digits.
func text(d time.Duration) string {
	switch {
	case d < micro:
		return fmt.Sprintf("%d ns", d.Nanoseconds())
	case d < milli:
		return fmt.Sprintf("%.3g µs", float64(d)/float64(micro))
	case d < time.Second:
		return fmt.Sprintf("%.3g ms", float64(d)/float64(milli))
	default:
		return fmt.Sprintf("%.3g s", d.Seconds())
	}
}

func megabytes(bytes int64) string { return fmt.Sprintf("%.1f MB", float64(bytes)/1e6) }

// plot returns the two curves.
func (f *figures) plot() picture {
	size := chart{title: "One Subscription, by size of the catalog", across: "packages in the catalog"}
	plain, dependent := curve{name: "without dependencies"}, curve{name: "with dependencies"}
	for _, p := range f.byCatalog {
		plain.points = append(plain.points, point{float64(p.packages), p.plain.Seconds()})
		dependent.points = append(dependent.points, point{float64(p.packages), p.dependent.Seconds()})
	}
	size.curves = []curve{plain, dependent}
	number := chart{title: "Many Subscriptions in one namespace", across: "Subscriptions"}
	cold, memo := curve{name: "cold"}, curve{name: "unchanged"}
	for _, p := range f.bySubscriptions {
		cold.points = append(cold.points, point{float64(p.subscriptions), p.cold.Seconds()})
		memo.points = append(memo.points, point{float64(p.subscriptions), p.memo.Seconds()})
	}
	number.curves = []curve{cold, memo}
	return picture{size, number}
}
