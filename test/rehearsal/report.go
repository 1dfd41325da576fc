package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// longestList is the number of failed calls and of differences that are printed for a switch.
const longestList = 200

// report prints the outcomes. It returns an error if one failed.
func report(out io.Writer, all []outcome) error {
	var b strings.Builder
	failed := false
	summarize(&b, all)
	for i := range all {
		failed = failed || all[i].failed()
		all[i].explain(&b)
	}
	if _, err := io.WriteString(out, b.String()); err != nil {
		return fmt.Errorf("printing the report: %w", err)
	}
	if failed || len(all) == 0 {
		return errDifferent
	}
	return nil
}

// summarize writes the tables of the switches and of the differences that the document names.
func summarize(b *strings.Builder, all []outcome) {
	b.WriteString("\n")
	table(b, "ROUND\tSWITCH\tCOMMAND\tWITHOUT A MANAGER\tLIMIT\tLEADS AFTER\tCALLS\tFAILED\tOBJECTS\tDIFFERENCES\tNOT DOCUMENTED\tRESULT", func(w io.Writer) {
		for i := range all {
			o := &all[i]
			sum, verdict := len(o.unnamed), "as promised"
			for _, n := range o.named {
				sum += n
			}
			if o.failed() {
				verdict = "FAILED"
			}
			fmt.Fprintf(w, "%d\t%s\t%s\t%s\t%s\t%s\t%d\t%d\t%d\t%d\t%d\t%s\n", o.round, o.change, seconds(o.command), seconds(o.gap), seconds(o.limit),
				seconds(o.lead), o.calls.total(), len(o.calls.failed), o.objects, sum, len(o.unnamed), verdict)
		}
	})
	for _, change := range []struct {
		name       string
		exceptions []exception
	}{{"take-over", atTakeover()}, {"hand-back", atHandback()}} {
		fmt.Fprintf(b, "\nDifferences after a %s that %s names, in all rounds:\n", change.name, page)
		table(b, "", func(w io.Writer) {
			for _, e := range change.exceptions {
				sum := 0
				for i := range all {
					if all[i].change == change.name {
						sum += all[i].named[e.text]
					}
				}
				fmt.Fprintf(w, "  %d\t%s\n", sum, e.text)
			}
		})
	}
}

// table writes lines with aligned columns.
func table(out io.Writer, head string, rows func(io.Writer)) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	if head != "" {
		fmt.Fprintln(w, head)
	}
	rows(w)
	_ = w.Flush() // out is in memory
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }

// explain writes what failed.
func (o *outcome) explain(b *strings.Builder) {
	if !o.failed() {
		return
	}
	fmt.Fprintf(b, "\nRound %d, %s:\n", o.round, o.change)
	if o.said != "" {
		fmt.Fprintf(b, "The command failed: %s\n", o.said)
	}
	if o.gap > o.limit {
		fmt.Fprintf(b, "%s without a manager, at most %s are promised.\n", seconds(o.gap), seconds(o.limit))
	}
	if o.lead > leadLimit {
		fmt.Fprintf(b, "A waiting supervisor led after %s, at most %s are promised.\n", seconds(o.lead), seconds(leadLimit))
	}
	list(b, "Failed calls", o.calls.failed)
	list(b, "Differences that "+page+" does not name, by kind and field", grouped(o.unnamed))
}

// grouped returns a line for each kind and field of differences, with their number and the first of them.
func grouped(all []difference) []string {
	groups := map[string][]difference{}
	for _, d := range all {
		key := d.kind + " " + d.field
		groups[key] = append(groups[key], d)
	}
	var lines []string
	for _, key := range slices.Sorted(maps.Keys(groups)) {
		lines = append(lines, fmt.Sprintf("%d: %s", len(groups[key]), groups[key][0]))
	}
	return lines
}

// list writes lines under a title, at most longestList of them.
func list(b *strings.Builder, title string, lines []string) {
	if len(lines) == 0 {
		return
	}
	fmt.Fprintf(b, "%s (%d):\n", title, len(lines))
	shown := slices.Clone(lines[:min(len(lines), longestList)])
	if rest := len(lines) - len(shown); rest > 0 {
		shown = append(shown, fmt.Sprintf("and %d more", rest))
	}
	for _, line := range shown {
		fmt.Fprintf(b, "  %s\n", line)
	}
}
