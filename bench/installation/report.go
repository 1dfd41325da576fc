package main

import (
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/chandlery/chandlery/bench/document"
)

// The targets.
const (
	targetInline = 500 * time.Millisecond
	targetImage  = time.Second
	targetMany   = 15 * time.Second
	targetWrites = 40
)

// each returns the mean number for one installation.
func (m stage) each(number int) float64 { return float64(number) / float64(len(m.samples)) }

// installing returns the number of writes of one installation without those of Kubernetes' own components.
func (m stage) installing() float64 {
	return m.each(m.wrote.all.sum(func(c change) bool { return !c.kubernetes() }))
}

// line returns a summary of a stage for the progress output.
func (m stage) line() string {
	return fmt.Sprintf("%s: Complete after %s (median), %s (p95), %s at the longest; AtLatestKnown after %s; %.1f writes, of which the supervisor counts %.1f",
		m.name, text(at(m.samples, 0.5, complete)), text(at(m.samples, 0.95, complete)), text(at(m.samples, 1, complete)),
		text(at(m.samples, 0.5, latest)), m.installing(), m.each(m.wrote.own))
}

// markdown returns the report.
func (f *figures) markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d cores, on which %s processes ran or waited; %s; one supervisor.\n\n", runtime.NumCPU(), document.Load(), runtime.Version())
	f.targets(&b)
	fmt.Fprintf(&b, "\n### One after the other\n\n%d installations of each kind. From the creation of the Subscription until a watcher sees the InstallPlan\n"+
		"Complete, and the Subscription AtLatestKnown:\n\n", f.o.installs)
	f.times(&b, f.inARow)
	fmt.Fprintf(&b, "\n### %d namespaces at once\n\nFrom the creation of the first OperatorGroup:\n\n", f.o.namespaces)
	f.times(&b, f.atOnce)
	f.writes(&b)
	return b.String()
}

// targets writes the table of the targets.
func (f *figures) targets(b *strings.Builder) {
	b.WriteString("| Figure | Target | Measured | Holds |\n|---|---|---|---|\n")
	row := func(what, target, got string, holds bool) {
		answer := "yes"
		if !holds {
			answer = "**no**"
		}
		fmt.Fprintf(b, "| %s | less than %s | %s | %s |\n", what, target, got, answer)
	}
	for i, m := range f.inARow {
		target := targetImage
		if i == 0 {
			target = targetInline
		}
		median := at(m.samples, 0.5, complete)
		row("Complete, median, "+m.name, text(target), text(median), median < target)
	}
	for _, m := range f.atOnce {
		row(fmt.Sprintf("%d namespaces, all Complete, %s", len(m.samples), m.name), text(targetMany), text(m.took), m.took < targetMany)
	}
	for _, m := range slices.Concat(f.inARow, f.atOnce) {
		row("API writes for each installation, "+m.name, strconv.Itoa(targetWrites), fmt.Sprintf("%.1f", m.installing()), m.installing() < targetWrites)
	}
}

// times writes the table of the times of stages.
func (f *figures) times(b *strings.Builder, stages []stage) {
	b.WriteString("| Bundle | Complete: median | p95 | longest | AtLatestKnown: median | p95 | longest |\n|---|---|---|---|---|---|---|\n")
	for _, m := range stages {
		fmt.Fprintf(b, "| %s |", m.name)
		for _, of := range []func(sample) time.Duration{complete, latest} {
			for _, share := range []float64{0.5, 0.95, 1} {
				fmt.Fprintf(b, " %s |", text(at(m.samples, share, of)))
			}
		}
		b.WriteByte('\n')
	}
}

// writes adds the table of the writes.
func (f *figures) writes(b *strings.Builder) {
	b.WriteString("\n### Writes\n\nFor each installation, as the API server counts them, with the user's own: a Subscription, and an OperatorGroup where\n" +
		"one is made. The API server does not tell who writes; what only Kubernetes' own controllers change is added up apart.\n\n| Resource |")
	stages := slices.Concat(f.inARow, f.atOnce)
	all := writes{}
	for _, m := range stages {
		fmt.Fprintf(b, " %s |", m.name)
		for c, n := range m.wrote.all {
			all[c] += n
		}
	}
	b.WriteString("\n|---" + strings.Repeat("|---", len(stages)) + "|\n")
	row := func(name string, number func(stage) float64) {
		fmt.Fprintf(b, "| %s |", name)
		for _, m := range stages {
			fmt.Fprintf(b, " %s |", count(number(m)))
		}
		b.WriteByte('\n')
	}
	for _, resource := range all.resources(func(c change) bool { return !c.kubernetes() }) {
		row(resource, func(m stage) float64 {
			return m.each(m.wrote.all.sum(func(c change) bool { return c.resource == resource }))
		})
	}
	row("**sum**", stage.installing)
	row("of which refused (conflicts and the like)", func(m stage) float64 {
		return m.each(m.wrote.all.sum(func(c change) bool { return !c.kubernetes() && c.refused }))
	})
	row("what the supervisor counts itself", func(m stage) float64 { return m.each(m.wrote.own) })
	row("beside it, by Kubernetes", func(m stage) float64 {
		return m.each(m.wrote.all.sum(func(c change) bool { return c.kubernetes() && !c.background() }))
	})
	fmt.Fprintf(b, "\nKubernetes' own are changes of %s.\n",
		strings.Join(all.resources(func(c change) bool { return c.kubernetes() && !c.background() }), ", "))
}

func count(number float64) string {
	if number == 0 {
		return ""
	}
	return fmt.Sprintf("%.1f", number)
}

// text formats a time for people.
func text(d time.Duration) string {
	if d < time.Second {
		return fmt.Sprintf("%d ms", d.Milliseconds())
	}
	return fmt.Sprintf("%.1f s", d.Seconds())
}
