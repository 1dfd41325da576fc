package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/chandlery/chandlery/docs/reference/facts"
)

// metricsPage lists the metrics of both programs.
func metricsPage(ctx context.Context) (string, error) {
	code, err := facts.Load(ctx, ".")
	if err != nil {
		return "", fmt.Errorf("reading the code: %w", err)
	}
	metrics, err := code.Metrics()
	if err != nil {
		return "", fmt.Errorf("finding metrics: %w", err)
	}
	var registry, supervisor strings.Builder
	for _, m := range metrics {
		out := &supervisor
		if strings.HasPrefix(m.Package, "server") {
			out = &registry
		}
		fmt.Fprintf(out, "- `%s` (`%s`): %s\n", m.Name, strings.Join(append([]string{m.Type}, m.Labels...), "`, `"), m.Help)
	}
	return fmt.Sprintf(metricsText, registry.String(), supervisor.String()), nil
}

// metricsText is the text around the lists.
const metricsText = `# Metrics

Both programs serve metrics for Prometheus at ` + "`--metrics-address`" + `, under ` + "`/metrics`" + `
([security](../security.md#network)). [Alerts](../alerts.md) use them. The name of a metric ends with its unit; a
timestamp is in seconds since 1970. The lists have the type and the labels of each metric. A metric with labels appears
when it has a value for them.

## Registry

The default address is ` + "`:9090`" + `. The registry also serves the usual metrics of Go and the process
(` + "`go_*`, `process_*`" + `).

%s
## Supervisor

The default address is ` + "`:8080`" + `. Most of these metrics are zero on standbys. The supervisor also serves the usual
metrics of controllers (` + "`controller_runtime_*`, `workqueue_*`, `rest_client_*`" + `), of leader election
(` + "`leader_election_master_status`" + ` shows the leader), of Go and of the process. Metrics without the prefix
` + "`chandlery_`" + ` have the names, labels and meanings of OLM's.

%s`
