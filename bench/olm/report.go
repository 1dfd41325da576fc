package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/procfs"

	"github.com/chandlery/chandlery/test/scale"
)

const mebibyte = 1 << 20

// show prints a batch: times, sums of requests, and the requests by kind, for each installation.
func show(out io.Writer, b *scale.OLMBatch) error {
	load, err := loadAverage()
	if err != nil {
		return err
	}
	each := func(d time.Duration) time.Duration { return (d / time.Duration(b.Namespaces)).Round(time.Millisecond) }
	t := b.Totals()
	var text strings.Builder
	fmt.Fprintf(&text, "\n%d to %d namespaces (load average %.1f):\n", b.Before, b.Before+b.Namespaces, load)
	fmt.Fprintf(&text, "  Subscriptions AtLatestKnown after %s, ClusterServiceVersions Succeeded after %s, %s each; the last request after %s\n",
		b.Latest.Round(time.Millisecond), b.Took.Round(time.Millisecond), each(b.Took), b.Span.Round(time.Second))
	fmt.Fprintf(&text, "  InstallPlans failed: %d %v\n", len(b.Failed), b.Failed)
	fmt.Fprintf(&text, "  processor time each: olm %s, catalog %s, API server %s\n", each(b.Operator.Processor), each(b.Catalog.Processor), each(b.APIServer))
	fmt.Fprintf(&text, "  anonymous memory: olm %.1f MiB, catalog %.1f MiB\n", mebibytes(b.Operator.Memory), mebibytes(b.Catalog.Memory))
	fmt.Fprintf(&text, "  requests each: %.1f (%.1f reads, %.1f writes) and %.1f for Events; conflicts in all: %d\n",
		b.Each(t.Requests()), b.Each(t.Reads), b.Each(t.Writes), b.Each(t.Events), t.Conflicts)
	counts := b.Counts()
	for _, kind := range byCount(counts) {
		fmt.Fprintf(&text, "  %8.2f %s\n", b.Each(counts[kind]), kind)
	}
	_, err = io.WriteString(out, text.String())
	return err
}

// byCount returns the kinds of requests, the most frequent first.
func byCount(counts map[scale.Kind]int) []scale.Kind {
	kinds := make([]scale.Kind, 0, len(counts))
	for kind := range counts {
		kinds = append(kinds, kind)
	}
	slices.SortFunc(kinds, func(a, b scale.Kind) int {
		return cmp.Or(counts[b]-counts[a], strings.Compare(a.String(), b.String()))
	})
	return kinds
}

func mebibytes(bytes int64) float64 { return float64(bytes) / mebibyte }

// loadAverage returns the load average of the machine in the last five minutes.
func loadAverage() (float64, error) {
	fs, err := procfs.NewDefaultFS()
	if err != nil {
		return 0, fmt.Errorf("reading the load average: %w", err)
	}
	load, err := fs.LoadAvg()
	if err != nil {
		return 0, fmt.Errorf("reading the load average: %w", err)
	}
	return load.Load5, nil
}
