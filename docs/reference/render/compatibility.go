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
	total, differences := 0, 0
	for _, g := range rules.All() {
		for _, r := range g.Rules {
			total++
			if r.Difference != "" {
				differences++
			}
		}
	}
	fmt.Fprintf(&page, compatibilityText, total, differences)
	for _, g := range rules.All() {
		if len(g.Rules) == 0 {
			continue
		}
		fmt.Fprintf(&page, "\n## %s. %s\n\n| Rule | Situation | Result | Difference of OLM, and why it remains |\n|---|---|---|---|\n", g.Letter, g.Title)
		for _, r := range g.Rules {
			difference := ""
			if r.Difference != "" {
				difference = "OLM: " + r.Difference + ". " + strings.ToUpper(r.Reason[:1]) + r.Reason[1:] + "."
			}
			fmt.Fprintf(&page, "| %s | %s | %s | %s |\n", r.ID, inCell(r.Given), inCell(r.Then), inCell(difference))
		}
	}
	return page.String(), nil
}

// compatibilityText is the introduction of the page.
const compatibilityText = `# Compatibility with OLM

The suite ` + "`test/compat`" + ` checks these %d rules against a Kubernetes API server, as a client of Operator Lifecycle Manager
(OLM) would. In %d of them, OLM v0.46.0 behaves differently; the last column says how and why.

| Command | Cluster |
|---|---|
| ` + "`make compat`" + ` | a new control plane with the supervisor |
| ` + "`make compat COMPAT_KUBECONFIG=FILE`" + ` | an existing cluster in which the supervisor or OLM runs |
| ` + "`make compat-olm`" + ` | a new control plane with OLM; rules with a difference are not checked |

Each command prints a line for each rule and writes the results in JUnit format to ` + "`out/compat.xml`" + `.
`
