package scale

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/prometheus/procfs"
)

// measurement is the state of counters.
type measurement struct {
	reconciles            map[string]int
	supervisor, apiServer time.Duration
	memory                int64
}

func (c *Cluster) measure(ctx context.Context) (measurement, error) {
	var m measurement
	var err error
	if m.reconciles, err = c.reconciles(ctx); err != nil {
		return m, err
	}
	proc, err := procfs.NewProc(c.supervisor.PID())
	if err != nil {
		return m, fmt.Errorf("reading the state of the supervisor: %w", err)
	}
	status, err := proc.NewStatus()
	if err != nil {
		return m, fmt.Errorf("reading the memory of the supervisor: %w", err)
	}
	m.memory = int64(status.RssAnon)
	if m.supervisor, err = processorTime(proc); err != nil {
		return m, err
	}
	server, err := c.apiServer()
	if err != nil {
		return m, err
	}
	m.apiServer, err = processorTime(server)
	return m, err
}

func processorTime(p procfs.Proc) (time.Duration, error) {
	stat, err := p.Stat()
	if err != nil {
		return 0, fmt.Errorf("reading the processor time of process %d: %w", p.PID, err)
	}
	return time.Duration(stat.CPUTime() * float64(time.Second)), nil
}

// apiServer finds the process of the API server by the folder of this control plane in its arguments.
func (c *Cluster) apiServer() (procfs.Proc, error) {
	all, err := procfs.AllProcs()
	if err != nil {
		return procfs.Proc{}, fmt.Errorf("listing processes: %w", err)
	}
	folder := filepath.Dir(c.plane.Kubeconfig())
	for _, p := range all {
		line, err := p.CmdLine()
		if err != nil || len(line) == 0 || filepath.Base(line[0]) != "kube-apiserver" {
			continue // it ended, or is another program
		}
		if strings.Contains(strings.Join(line, " "), folder) {
			return p, nil
		}
	}
	return procfs.Proc{}, fmt.Errorf("no process of the API server uses folder %s", folder)
}

// reconciles reads how many passes each controller has made.
func (c *Cluster) reconciles(ctx context.Context) (_ map[string]int, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+c.metrics+"/metrics", http.NoBody)
	if err != nil {
		return nil, fmt.Errorf("reading metrics: %w", err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, fmt.Errorf("reading metrics: %w", err)
	}
	defer func() { err = errors.Join(err, response.Body.Close()) }()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(response.Body)
	if err != nil {
		return nil, fmt.Errorf("reading metrics: %w", err)
	}
	counts := map[string]int{}
	for _, m := range families["controller_runtime_reconcile_total"].GetMetric() {
		for _, l := range m.GetLabel() {
			if l.GetName() == "controller" {
				counts[l.GetValue()] += int(m.GetCounter().GetValue())
			}
		}
	}
	if len(counts) == 0 {
		return nil, errors.New("the supervisor has no metric controller_runtime_reconcile_total")
	}
	return counts, nil
}
