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

// measurement is the state of the supervisor's counters.
type measurement struct {
	usage

	reconciles map[string]int
}

// usage is the processor time and the memory of a process.
type usage struct {
	processor time.Duration
	// memory is anonymous memory, resident is all resident memory, both in bytes.
	memory, resident int64
}

// usageOf returns the usage of the process with an ID.
func usageOf(pid int) (usage, error) {
	proc, err := procfs.NewProc(pid)
	if err != nil {
		return usage{}, fmt.Errorf("reading the state of process %d: %w", pid, err)
	}
	status, err := proc.NewStatus()
	if err != nil {
		return usage{}, fmt.Errorf("reading the memory of process %d: %w", pid, err)
	}
	processor, err := processorTime(proc)
	return usage{processor, int64(status.RssAnon), int64(status.VmRSS)}, err
}

func (c *Cluster) measure(ctx context.Context) (measurement, error) {
	var m measurement
	var err error
	if m.reconciles, err = reconciles(ctx, c.metrics); err != nil {
		return m, err
	}
	m.usage, err = usageOf(c.plane.measured.PID())
	return m, err
}

func processorTime(p procfs.Proc) (time.Duration, error) {
	stat, err := p.Stat()
	if err != nil {
		return 0, fmt.Errorf("reading the processor time of process %d: %w", p.PID, err)
	}
	return time.Duration(stat.CPUTime() * float64(time.Second)), nil
}

// componentTimes are the processor times of components of the control plane.
type componentTimes struct {
	apiServer, controllerManager time.Duration
}

func (p *plane) componentTimes() (t componentTimes, err error) {
	for _, c := range []struct {
		name string
		time *time.Duration
	}{{"kube-apiserver", &t.apiServer}, {"kube-controller-manager", &t.controllerManager}} {
		proc, err := p.component(c.name)
		if err != nil {
			return t, err
		}
		if *c.time, err = processorTime(proc); err != nil {
			return t, err
		}
	}
	return t, nil
}

// component finds the process of a component by this control plane's folder in its arguments.
func (p *plane) component(name string) (procfs.Proc, error) {
	all, err := procfs.AllProcs()
	if err != nil {
		return procfs.Proc{}, fmt.Errorf("listing processes: %w", err)
	}
	folder := filepath.Dir(p.Kubeconfig())
	for _, one := range all {
		line, err := one.CmdLine()
		if err != nil || len(line) < 2 || line[1] != name {
			continue // it ended, or is another program
		}
		if strings.Contains(strings.Join(line, " "), folder) {
			return one, nil
		}
	}
	return procfs.Proc{}, fmt.Errorf("no process of %s uses folder %s", name, folder)
}

// reconciles returns the numbers of reconciliations by controller, from the metrics of a process.
func reconciles(ctx context.Context, address string) (_ map[string]int, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/metrics", http.NoBody)
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
