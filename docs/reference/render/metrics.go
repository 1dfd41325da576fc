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
		fmt.Fprintf(out, "| `%s` | %s | %s | %s | %s |\n", m.Name, m.Type, labels(m), m.Unit(), strings.ReplaceAll(m.Help, "|", `\|`))
	}
	return fmt.Sprintf(metricsText, registry.String(), supervisor.String()), nil
}

func labels(m facts.Metric) string {
	if len(m.Labels) == 0 {
		return "none"
	}
	return "`" + strings.Join(m.Labels, "`, `") + "`"
}

// metricsText is the text around the tables.
const metricsText = `# Metrics

Both programs serve metrics in the format of Prometheus under ` + "`/metrics`" + `, at the address of
` + "`--metrics-address`" + `, without TLS and without authentication ([security](../security.md#network)).
[Operations](../operations.md#metrics) lists useful alerts.

A histogram also has three names that end with ` + "`_bucket`, `_sum` and `_count`" + `. A metric with labels
appears when it has a value for them.

## Registry

The default address is ` + "`:9090`" + `. The registry also serves the usual metrics of Go and of the process
(` + "`go_*`, `process_*`" + `).

| Name | Type | Labels | Unit | Meaning |
|---|---|---|---|---|
%s
## Supervisor

The default address is ` + "`:8080`" + `. Standbys serve these metrics too, but most are zero there. The supervisor
also serves the usual metrics of controllers (` + "`controller_runtime_*`, `workqueue_*`, `rest_client_*`" + `), of
leader election (` + "`leader_election_master_status`" + ` shows the leader), of Go and of the process.

| Name | Type | Labels | Unit | Meaning |
|---|---|---|---|---|
%s`
