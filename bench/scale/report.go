package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/chandlery/chandlery/test/scale"
)

// report returns the figures as Markdown.
func report(machine string, rounds []round, after afterwards) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s; one supervisor.\n\n", machine)
	writeTimes(&b, rounds)
	b.WriteString("\nRequests and processor time are for each installation; conflicts and failed installations are totals. Requests do not\n" +
		"include Events, watches and periodic requests.\n")
	writeAfterwards(&b, after)
	writePasses(&b, rounds)
	writeRequests(&b, rounds[len(rounds)-1])
	return b.String()
}

// writeTimes writes a row for each number of namespaces and each side.
func writeTimes(b *strings.Builder, rounds []round) {
	b.WriteString("| Namespaces | By | Time | of the floor | Each | Requests | Reads | Writes | Events | Conflicts | Failed | Processor: supervisor | API server | controller manager | Memory, anonymous | resident |\n" +
		"|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|\n")
	for _, r := range rounds {
		floor := r.batches[len(r.batches)-1].Took
		for i, one := range r.batches {
			t := one.Totals()
			fmt.Fprintf(b, "| %d | %s | %.1f s | %.2f | %d ms | %.1f | %.1f | %.1f | %.1f | %d | %d | %s | %s | %s | %s | %s |\n",
				r.namespaces, r.names[i], one.Took.Seconds(), one.Took.Seconds()/floor.Seconds(), each(one, one.Took).Milliseconds(),
				one.Each(t.Requests()), one.Each(t.Reads), one.Each(t.Writes), one.Each(t.Events), t.Conflicts, len(one.Failed),
				milliseconds(each(one, one.Supervisor)), milliseconds(each(one, one.APIServer)), milliseconds(each(one, one.ControllerManager)),
				mebibytes(one.Memory), mebibytes(one.Resident))
		}
	}
}

// writeAfterwards writes the requests and the memory after the installation in the largest number of namespaces.
func writeAfterwards(b *strings.Builder, after afterwards) {
	if after.rest == nil {
		return
	}
	minute := func(n int) float64 { return float64(n) / after.rest.Span.Minutes() }
	writes := 0
	for _, r := range after.rest.Requests {
		if !r.Reads() {
			writes++
		}
	}
	fmt.Fprintf(b, "\n## Afterwards\n\nWith %d namespaces, at rest, the supervisor sends %.1f requests in a minute, %.1f of them writes; its Lease and its\n"+
		"watches are not among them. It has %s of anonymous memory, and uses %s of processor time in a minute.\n\n", after.rest.Before, minute(len(after.rest.Requests)),
		minute(writes), mebibytes(after.rest.Memory), milliseconds(time.Duration(float64(after.rest.Supervisor)/after.rest.Span.Minutes())))
	if update := after.update; update != nil {
		totals := update.Totals()
		fmt.Fprintf(b, "A version that replaces the installed one is in all %d namespaces %.1f s after the catalog has it: %d ms, %.1f requests and\n"+
			"%.1f Events for each, %d conflicts.\n", update.Namespaces, update.Took.Seconds(), each(update, update.Took).Milliseconds(),
			update.Each(totals.Requests()), update.Each(totals.Events), totals.Conflicts)
	}
	b.WriteString("\nMemory of one object in the supervisor:\n\n| Kind | Objects | As the API server sends it | As the cache keeps it |\n|---|---|---|---|\n")
	for _, c := range after.cached {
		fmt.Fprintf(b, "| %s | %d | %d bytes | %d bytes |\n", c.Kind, c.Objects, c.Whole, c.Kept)
	}
}

// writePasses writes a row for each controller of the first side.
func writePasses(b *strings.Builder, rounds []round) {
	b.WriteString("\n## Reconciliations by controller\n\nFor each installation, by the number of namespaces, and the budget that `test/e2e/scale` enforces:\n\n| Controller |")
	passes, limits := map[string]int{}, map[string]scale.Row{}
	for _, row := range scale.Reconciliations() {
		limits[row.Resource] = row
	}
	for _, r := range rounds {
		fmt.Fprintf(b, " %d |", r.namespaces)
		for name, n := range r.batches[0].Reconciles {
			passes[name] += n
		}
	}
	b.WriteString(" Budget | Why |\n|---" + strings.Repeat("|---", len(rounds)+2) + "|\n")
	for _, name := range slices.SortedFunc(maps.Keys(passes), mostFirst(passes, strings.Compare)) {
		fmt.Fprintf(b, "| %s |", name)
		for _, r := range rounds {
			fmt.Fprintf(b, " %.1f |", r.batches[0].Each(r.batches[0].Reconciles[name]))
		}
		limit := "none"
		row := limits[name]
		if row.Resource != "" {
			limit = budget(row)
		}
		fmt.Fprintf(b, " %s | %s |\n", limit, row.Why)
	}
}

// withoutBudget begins the list of requests that the budget does not have.
const withoutBudget = "Requests without a budget"

// writeRequests writes the requests of one installation with their budget.
func writeRequests(b *strings.Builder, r round) {
	fmt.Fprintf(b, "\n## Requests of one installation\n\nThe mean of %d installations at once, from the audit log of the API server, and the budget that `test/e2e/scale`\n"+
		"enforces. Together, requests other than Events are limited to %d, and reads to %d.\n\n| Verb | Resource | Number | Budget | Why |\n|---|---|---|---|---|\n",
		r.namespaces, scale.MaxRequests, scale.MaxReads)
	batch := r.batches[0]
	counts := batch.Counts()
	for _, row := range scale.Budget() {
		fmt.Fprintf(b, "| %s | %s | %.2f | %s | %s |\n", row.Verb, row.Resource, batch.Each(counts[row.Kind]), budget(row), row.Why)
		delete(counts, row.Kind)
	}
	compare := func(a, b scale.Kind) int { return strings.Compare(a.String(), b.String()) }
	if len(counts) > 0 {
		b.WriteString("\n" + withoutBudget + ", of all installations together:\n\n")
	}
	for _, k := range slices.SortedFunc(maps.Keys(counts), mostFirst(counts, compare)) {
		fmt.Fprintf(b, "- %d %s\n", counts[k], k)
	}
}

// budget returns the largest allowed number of requests in a row.
func budget(row scale.Row) string {
	switch {
	case row.Minute > 0:
		return fmt.Sprintf("%g in a minute", row.Minute)
	case row.First > 0 && row.Each > 0:
		return fmt.Sprintf("%g, %d more for the first", row.Each, row.First)
	case row.First > 0:
		return fmt.Sprintf("%d for the first", row.First)
	}
	return fmt.Sprintf("%g", row.Each)
}

// mostFirst returns a comparison by numbers, the largest first, and then by name.
func mostFirst[K comparable](numbers map[K]int, byName func(a, b K) int) func(a, b K) int {
	return func(a, b K) int { return cmp.Or(numbers[b]-numbers[a], byName(a, b)) }
}

func each(b *scale.Batch, d time.Duration) time.Duration {
	return d / time.Duration(max(1, b.Namespaces))
}

func milliseconds(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return fmt.Sprintf("%d ms", d.Milliseconds())
}

func mebibytes(n int64) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
}
