package main

import (
	"fmt"
	"strings"
	"time"
)

// markdown returns the report.
func markdown(o options, all []figures, rest restFigures) string {
	var b strings.Builder
	fmt.Fprintf(&b, "PackageManifests of a catalog of %d packages, through kube-apiserver:\n\n", all[0].packages)
	b.WriteString("| Server | ready | table | full list | ten full lists at once | processor time for all calls | idle memory | peak |\n|---|---|---|---|---|---|---|---|\n")
	for _, f := range all {
		fmt.Fprintf(&b, "| %s | %.1f s | %s | %s | %s | %.2f s | %s | %s |\n",
			f.name, f.ready.Seconds(), milliseconds(f.table), milliseconds(f.list), milliseconds(f.crowd),
			f.processor.Seconds(), mebibytes(f.idle), mebibytes(f.peak))
	}
	fmt.Fprintf(&b, "\nTimes of single calls are medians of %d. Idle memory is anonymous (RssAnon), %s after the first answer; the peak is resident (VmHWM). Processor time is that of the server, without its time at rest.\n", o.calls, o.rest)
	fmt.Fprintf(&b, "\nAnonymous memory of a whole supervisor at rest: %s with the API and the catalog, %s without the API; without a catalog %s and %s.\n",
		mebibytes(rest.on), mebibytes(rest.off), mebibytes(rest.emptyOn), mebibytes(rest.emptyOff))
	fmt.Fprintf(&b, "While a leader answered %d times %d full lists at once, its Lease was at most %.1f s old, and a table took %s (median). Its peak was %s resident.\n",
		o.calls, crowd, rest.lease.Seconds(), milliseconds(rest.table), mebibytes(rest.peak))
	return b.String()
}

func milliseconds(d time.Duration) string { return fmt.Sprintf("%.0f ms", d.Seconds()*1000) }

func mebibytes(n int64) string { return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20)) }
