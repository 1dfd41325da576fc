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

// metricsText is the page around the tables.
const metricsText = `# Metrics

Both programs serve metrics in the format of Prometheus under ` + "`/metrics`" + `, at the address of
` + "`--metrics-address`" + `, without TLS and without asking who reads them
([security](../security.md#network)). Which alerts are worth having is in
[operations](../operations.md#metrics).

A histogram has three names besides: with ` + "`_bucket`, `_sum` and `_count`" + ` at the end. A metric with
labels is there only once it has a value for them.

## Registry

At ` + "`:9090`" + ` unless told otherwise. Besides these there are the usual ones of Go and of the process
(` + "`go_*`, `process_*`" + `).

| Name | Type | Labels | Unit | Meaning |
|---|---|---|---|---|
%s
## Supervisor

At ` + "`:8080`" + ` unless told otherwise; standbys serve them, too, and most are zero there. Besides these
there are the usual ones of controllers (` + "`controller_runtime_*`, `workqueue_*`, `rest_client_*`" + `), of
leader election (` + "`leader_election_master_status`" + `: who leads), of Go and of the process.

| Name | Type | Labels | Unit | Meaning |
|---|---|---|---|---|
%s`
