package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/chandlery/chandlery/test/compat/rules"
)

// clientGroup is the letter of the group whose transcripts are printed.
const clientGroup = "T"

// report prints the transcripts of clients, the cases that did not pass, and the table of the groups.
func report(out io.Writer, seen results, olm bool) {
	reportTranscripts(out, seen)
	if olm {
		reportDifferences(out, seen)
	} else {
		reportFailures(out, seen)
	}
	reportSkipped(out, seen)
	reportGroups(out, seen)
}

// reportTranscripts prints the output of the cases with unmodified clients. Failed cases are printed apart.
func reportTranscripts(out io.Writer, seen results) {
	for _, r := range allRules() {
		if r.ID[:1] == clientGroup && seen.outcomes[r.ID] == rules.Passed {
			fmt.Fprintf(out, "%s: %s\n%s\n\n", r.ID, r.Given, indent(text(seen.outputs[r.ID])))
		}
	}
}

// reportFailures prints each failed case with its rule and its output.
func reportFailures(out io.Writer, seen results) {
	for _, r := range allRules() {
		if seen.outcomes[r.ID] == rules.Failed {
			fmt.Fprintf(out, "%s failed\n  Given: %s\n  Then:  %s\n%s\n\n", r.ID, r.Given, r.Then, indent(text(seen.outputs[r.ID])))
		}
	}
	for _, id := range slices.Sorted(maps.Keys(seen.outcomes)) {
		if _, err := rules.Find(id); err != nil && seen.outcomes[id] == rules.Failed {
			fmt.Fprintf(out, "%s failed\n%s\n\n", id, indent(text(seen.outputs[id])))
		}
	}
}

// reportDifferences lists the cases that fail with OLM.
func reportDifferences(out io.Writer, seen results) {
	fmt.Fprintf(out, "Cases that fail with OLM %s:\n", rules.OLMVersion)
	for _, r := range allRules() {
		if seen.outcomes[r.ID] == rules.Failed {
			fmt.Fprintf(out, "  %s: %s\n", r.ID, cmp.Or(r.Explanation(), "No difference is known."))
		}
	}
	fmt.Fprintln(out)
}

// reportSkipped prints the reasons for which cases were not tried.
func reportSkipped(out io.Writer, seen results) {
	ids := map[string][]string{}
	for _, r := range allRules() {
		if seen.outcomes[r.ID] == rules.Skipped {
			reason := seen.reasonOf(r.ID)
			ids[reason] = append(ids[reason], r.ID)
		}
	}
	for _, reason := range slices.Sorted(maps.Keys(ids)) {
		fmt.Fprintf(out, "not tried: %s\n  %s\n\n", reason, strings.Join(ids[reason], " "))
	}
}

// reportGroups prints the numbers of each group, and how many rules were not tried.
func reportGroups(out io.Writer, seen results) {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "\trules\tpassed\tfailed\tnot tried\t  group")
	total := map[rules.Outcome]int{}
	all := 0
	for _, g := range rules.All() {
		counts := map[rules.Outcome]int{}
		for _, r := range g.Rules {
			counts[seen.outcomes[r.ID]]++
			total[seen.outcomes[r.ID]]++
		}
		all += len(g.Rules)
		reportRow(table, g.Letter, len(g.Rules), counts, g.Title)
	}
	reportRow(table, "all", all, total, "")
	table.Flush() //nolint:errcheck // nothing can be done if the standard output is closed
	fmt.Fprintf(out, "\n%d of %d rules were not tried.\n", total[rules.Skipped]+total[""], all)
}

func reportRow(out io.Writer, name string, all int, counts map[rules.Outcome]int, title string) {
	fmt.Fprintf(out, "%s\t%d\t%d\t%d\t%d\t  %s\n", name, all, counts[rules.Passed], counts[rules.Failed], counts[rules.Skipped]+counts[""], title)
}

// allRules returns the rules of all groups.
func allRules() []rules.Rule {
	var all []rules.Rule
	for _, g := range rules.All() {
		all = append(all, g.Rules...)
	}
	return all
}

// indent moves each line of a text to the right.
func indent(text string) string {
	if text == "" {
		return "  (no output)"
	}
	return "  " + strings.ReplaceAll(text, "\n", "\n  ")
}
