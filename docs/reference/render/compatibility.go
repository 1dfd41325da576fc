package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/chandlery/chandlery/test/compat/rules"
)

// compatibilityPage lists the rules that test/compat checks.
func compatibilityPage(context.Context) (string, error) {
	var page strings.Builder
	counts := map[rules.Outcome]int{}
	var untried []string
	for _, g := range rules.All() {
		for _, r := range g.Rules {
			counts[r.Expected()]++
			if r.Untried != "" && !slices.Contains(untried, r.Untried) {
				untried = append(untried, r.Untried)
			}
		}
	}
	passed, failed, skipped := counts[rules.Passed], counts[rules.Failed], counts[rules.Skipped]
	fmt.Fprintf(&page, compatibilityText, passed+failed+skipped, rules.OLMVersion, passed, failed, skipped, notRun, strings.Join(untried, "; "), flagRows())
	page.WriteString(clientSection())
	for _, g := range rules.All() {
		if len(g.Rules) == 0 {
			continue
		}
		fmt.Fprintf(&page, "\n## %s. %s\n\n| Rule | Situation | Result | OLM |\n|---|---|---|---|\n", g.Letter, g.Title)
		for _, r := range withReferences(joined(g.Rules)) {
			fmt.Fprintf(&page, "| %s | %s | %s | %s |\n", strings.Join(r.ids, ", "), inCell(r.situation()), inCell(r.result), inCell(r.olm))
		}
	}
	return page.String(), nil
}

// clientSection returns the section about unmodified clients.
func clientSection() string {
	var section strings.Builder
	section.WriteString("\n## Unmodified clients\n\n| Client | Version | Checked by | What does not work | Reason |\n|---|---|---|---|---|\n")
	for _, c := range rules.Clients() {
		limits := c.Limits
		if len(limits) == 0 {
			limits = []rules.Limit{{Missing: "no limit is known"}}
		}
		for _, l := range limits {
			fmt.Fprintf(&section, "| %s | %s | %s | %s | %s |\n", c.Name, c.Version, c.Checks, inCell(l.Missing), inCell(l.Reason))
		}
	}
	return section.String()
}

// flagRows returns the rows of the table of flags.
func flagRows() string {
	ids := map[string][]string{}
	for _, g := range rules.All() {
		for _, r := range g.Rules {
			for _, flag := range rules.Flags(r.ID) {
				ids[flag] = append(ids[flag], r.ID)
			}
		}
	}
	var rows strings.Builder
	for _, flag := range slices.Sorted(maps.Keys(ids)) {
		fmt.Fprintf(&rows, "| `%s` | %s |\n", flag, strings.Join(ids[flag], ", "))
	}
	return rows.String()
}

// notRun marks the rules whose cases do not run with OLM.
const notRun = "†"

// tableRow is a row of the page: one rule, or several with the same result.
type tableRow struct {
	ids []string
	// givens has the words of each rule's situation.
	givens      [][]string
	result, olm string
	untried     string
}

// joined returns the rows of rules. Rules share a row if only a few words of their situations differ.
func joined(list []rules.Rule) []tableRow {
	var rows []tableRow
	for _, r := range list {
		id := r.ID
		if r.Untried != "" {
			id += notRun
		}
		next := tableRow{
			ids: []string{id}, givens: [][]string{strings.Fields(r.Given + restOf(r))},
			result: r.Then, olm: r.Explanation(), untried: r.Untried,
		}
		i := slices.IndexFunc(rows, func(row tableRow) bool { return row.accepts(next) })
		if i < 0 {
			rows = append(rows, next)
			continue
		}
		rows[i].ids = append(rows[i].ids, id)
		rows[i].givens = append(rows[i].givens, next.givens...)
	}
	return rows
}

// maxDiffering is the largest number of words that differ between the situations of a row.
const maxDiffering = 3

// accepts reports whether a row can also list another one.
func (r tableRow) accepts(other tableRow) bool {
	if r.result != other.result || r.olm != other.olm || r.untried != other.untried {
		return false
	}
	all := slices.Concat(r.givens, other.givens)
	before, after := shared(all)
	if len(r.givens) > 1 {
		if b, a := shared(r.givens); b != before || a != after {
			return false
		}
	}
	return before+after >= 3 && !slices.ContainsFunc(all, func(words []string) bool {
		differing := words[before : len(words)-after]
		return len(differing) > maxDiffering || strings.ContainsAny(strings.Join(differing, " "), ",;:")
	})
}

// situation returns the situations of a row's rules. Words that all have are written once.
func (r tableRow) situation() string {
	first := r.givens[0]
	if len(r.givens) == 1 {
		return strings.Join(first, " ")
	}
	before, after := shared(r.givens)
	var differing []string
	for _, words := range r.givens {
		differing = append(differing, strings.Join(words[before:len(words)-after], " "))
	}
	last := len(differing) - 1
	choice := strings.Join(differing[:last], ", ") + " or " + differing[last]
	return strings.Join(slices.Concat(first[:before], []string{choice}, first[len(first)-after:]), " ")
}

// shared returns how many words all texts have in common at the beginning and at the end. Each text has at least one
// word more.
func shared(all [][]string) (before, after int) {
	shortest := slices.MinFunc(all, func(a, b []string) int { return len(a) - len(b) })
	same := func(at func([]string) string) bool {
		return !slices.ContainsFunc(all, func(words []string) bool { return at(words) != at(shortest) })
	}
	for before < len(shortest)-1 && same(func(words []string) string { return words[before] }) {
		before++
	}
	for after < len(shortest)-1-before && same(func(words []string) string { return words[len(words)-1-after] }) {
		after++
	}
	return before, after
}

// withReferences replaces a long result or explanation that an earlier row has by the ID of that row.
func withReferences(rows []tableRow) []tableRow {
	results, explanations := map[string]string{}, map[string]string{}
	for i := range rows {
		id := strings.TrimSuffix(rows[i].ids[0], notRun)
		rows[i].result = reference(results, rows[i].result, id)
		rows[i].olm = reference(explanations, rows[i].olm, id)
	}
	return rows
}

// reference returns a text, or a reference to the row that has the same. It records the text for the next rows.
func reference(known map[string]string, text, id string) string {
	if first, ok := known[text]; ok {
		return "as " + first
	}
	if len(strings.Fields(text)) > 4 {
		known[text] = id
	}
	return text
}

// restOf returns the rest period of a rule in parentheses; empty if it has none.
func restOf(r rules.Rule) string {
	if r.Rest == 0 {
		return ""
	}
	return fmt.Sprintf(" (%d min)", int(r.Rest.Minutes()))
}

// compatibilityText is the introduction of the page.
const compatibilityText = `# Compatibility with OLM

The suite ` + "`test/compat`" + ` checks these %d rules against a Kubernetes API server, as a client of Operator Lifecycle Manager
(OLM) would. The column OLM has the differences that ` + "`make compat-olm`" + ` found with OLM %s:

- Empty: OLM does the same (%d of the cases that run).
- A text: what OLM does instead, and why the difference remains (%d of the cases that run).
- %d cases with %s do not run with OLM. The column is from OLM's sources. Reasons: %s.

If the text is that OLM does not do something, the case waited for it for a minute. "as A17" stands for the text of row
A17 in the same column. Group E is reserved for PackageManifests; K6 and T4 were never used.

| Command | Cluster |
|---|---|
| ` + "`make compat`" + ` | new control planes with the supervisor, as root one with a real node |
| ` + "`make compat KUBECONFIG=FILE`" + ` | an existing cluster whose supervisor runs on this machine |
| ` + "`make compat-olm`" + ` | new control planes with OLM, one with a real node (as root); it fails if the cases that fail differ from this table |
| ` + "`make soak`" + ` | a new control plane with the supervisor; only rules with a time in parentheses are checked |

A time in parentheses is how long ` + "`make soak`" + ` waits. In the other commands, this time is 75 s at most. The results are also in ` + "`out/compat.xml`, or in `out/compat-olm.xml` and `out/compat-olm-nodes.xml`" + `, in JUnit format.

Each command prints a table of the groups, each failed rule with its output, and the transcripts of unmodified clients.
The transcripts are also in ` + "`out/compat-clients.xml` or `out/compat-olm-clients.xml`" + `.
` + "`make compat RUN=REGEXP`" + ` checks a part, such as ` + "`RUN=TestSteps/B1`" + `.

In an existing cluster, the supervisor has to run on the machine of the suite, because the catalogs of the suite listen on
127.0.0.1. The suite skips rules that stop the supervisor, and rules that need a registry for the nodes. Without a real
node, it skips all rules that need running pods. Some rules need these flags of the supervisor:

| Flag | Rules |
|---|---|
%s
Without its flag, a rule is not tried. The suite finds the flags in the Deployment of the supervisor, or in
` + "`COMPAT_FLAGS`" + `, such as ` + "`COMPAT_FLAGS='--image-plain-http'`" + `. At the end, it deletes the CustomResourceDefinitions that
it created.
`
