package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/chandlery/chandlery/test/compat/rules"
)

// compatibilityPage lists the rules that test/compat checks.
func compatibilityPage(context.Context) (string, error) {
	var page strings.Builder
	counts := map[rules.Outcome]int{}
	for _, g := range rules.All() {
		for _, r := range g.Rules {
			counts[r.Expected()]++
		}
	}
	passed, failed, untried := counts[rules.Passed], counts[rules.Failed], counts[rules.Skipped]
	fmt.Fprintf(&page, compatibilityText, passed+failed+untried, passed, rules.OLMVersion, failed, untried)
	for _, g := range rules.All() {
		if len(g.Rules) == 0 {
			continue
		}
		fmt.Fprintf(&page, "\n## %s. %s\n\n| Rule | Situation | Result | OLM | Difference of OLM, and why it remains |\n|---|---|---|---|---|\n", g.Letter, g.Title)
		for _, r := range g.Rules {
			fmt.Fprintf(&page, "| %s | %s | %s | %s | %s |\n", r.ID, inCell(r.Given+restOf(r)), inCell(r.Then), olmCell(r), inCell(r.Explanation()))
		}
	}
	return page.String(), nil
}

// olmCell returns the outcome of a rule's case with OLM.
func olmCell(r rules.Rule) string {
	switch r.Expected() {
	case rules.Passed:
		return "passes"
	case rules.Failed:
		return "fails"
	default:
		return "not run: " + r.Untried
	}
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
(OLM) would. %d of the cases pass with OLM %s, and %d fail there. The last column says what OLM does instead, and why the
difference remains. ` + "`make compat-olm`" + ` checks both. %d cases do not run with OLM. There, the last column is from OLM's sources.

| Command | Cluster |
|---|---|
| ` + "`make compat`" + ` | a new control plane with the supervisor |
| ` + "`make compat COMPAT_KUBECONFIG=FILE`" + ` | an existing cluster in which the supervisor or OLM runs |
| ` + "`make compat-olm`" + ` | a new control plane with OLM; it lists the cases that fail, and fails if they differ from this table |
| ` + "`make soak`" + ` | a new control plane with the supervisor; only rules with a time in parentheses are checked |

A time in parentheses is how long the check waits. ` + "`make soak`" + ` waits for all of it, and the other commands for
20 s at most.

Each command prints a line for each rule. The results are in ` + "`out/compat.xml` or `out/compat-olm.xml`" + ` in JUnit format.
`
