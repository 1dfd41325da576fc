package attack

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/prometheus/procfs"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/test/ports"
	"github.com/chandlery/chandlery/test/process"
)

// supervisorProcess is the supervisor that is attacked, and its measurements.
type supervisorProcess struct {
	dir, kubeconfig string
	settle          time.Duration // see Options.Settle
	client          client.Client
	process         *process.Process // nil while it does not run
	metrics         string
}

// begin starts the supervisor. It waits until its caches are filled, it leads and it has read the catalog.
func (s *supervisorProcess) begin(ctx context.Context) error {
	address, err := ports.Reserve(ctx)
	if err != nil {
		return err
	}
	probes, err := ports.Reserve(ctx)
	if err != nil {
		return err
	}
	s.metrics = address.Address()
	if s.process, err = start(ctx, s.dir, "supervisor", "run", "--kubeconfig", s.kubeconfig, "--leader-election-namespace", home,
		"--metrics-address", s.metrics, "--health-address", probes.Address()); err != nil {
		return err
	}
	if err := s.await(ctx, "the supervisor to be ready", func(ctx context.Context) (bool, error) { return ready(ctx, probes.Address()) }); err != nil {
		return err
	}
	err = s.await(ctx, "the supervisor to lead", func(ctx context.Context) (bool, error) {
		lead, err := s.lead(ctx)
		return lead.holder != "", client.IgnoreNotFound(err)
	})
	if err != nil {
		return err
	}
	return s.await(ctx, "the catalog to be READY", func(ctx context.Context) (bool, error) {
		source := &operatorsv1alpha1.CatalogSource{}
		err := s.client.Get(ctx, client.ObjectKey{Namespace: catalogNamespace, Name: catalogName}, source)
		state := source.Status.GRPCConnectionState
		return state != nil && state.LastObservedState == "READY", err
	})
}

// ready reports whether a supervisor is ready. A supervisor that does not answer yet is not.
func ready(ctx context.Context, address string) (bool, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/readyz", http.NoBody)
	if err != nil {
		return false, fmt.Errorf("asking whether the supervisor is ready: %w", err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return false, nil //nolint:nilerr // it has not opened its port yet
	}
	return response.StatusCode == http.StatusOK, response.Body.Close()
}

// end stops the supervisor.
func (s *supervisorProcess) end() error {
	const grace = 30 * time.Second
	p := s.process
	s.process = nil
	return p.Stop(grace)
}

// lead is the leader and the number of its changes.
type lead struct {
	holder      string
	transitions int32
}

func (s *supervisorProcess) lead(ctx context.Context) (lead, error) {
	lease := &coordinationv1.Lease{}
	if err := s.client.Get(ctx, client.ObjectKey{Namespace: home, Name: api.LeaseName}, lease); err != nil {
		return lead{}, err //nolint:wrapcheck // the caller looks at it
	}
	return lead{ptr.Deref(lease.Spec.HolderIdentity, ""), ptr.Deref(lease.Spec.LeaseTransitions, 0)}, nil
}

// restart stops the supervisor, starts another one and returns how long that took.
func (s *supervisorProcess) restart(ctx context.Context) (time.Duration, error) {
	if err := s.end(); err != nil {
		return 0, err
	}
	began := time.Now()
	err := s.begin(ctx)
	return time.Since(began), err
}

// Names of metrics of Go's runtime.
const (
	metricLive   = "go_gc_heap_live_bytes"
	metricCycles = "go_gc_cycles_total_gc_cycles_total"
)

// heap waits for some seconds, and returns the smallest live heap after garbage collections. While the
// supervisor works, more is in use than it retains. Reading its metrics creates garbage, which
// triggers collections.
func (s *supervisorProcess) heap(ctx context.Context) (least int64, err error) {
	const collections = 6
	settled, begun, seen := time.Now().Add(s.settle), -1.0, -1.0
	err = s.await(ctx, "garbage collections of the supervisor", func(ctx context.Context) (bool, error) {
		if time.Now().Before(settled) {
			return false, nil
		}
		for range 20 {
			families, err := s.scrape(ctx)
			if err != nil {
				return false, err
			}
			cycles, live := value(families[metricCycles]), int64(value(families[metricLive]))
			switch {
			case begun < 0:
				begun, seen = cycles, cycles
			case cycles > seen && (least == 0 || live < least):
				least = live
			}
			seen = cycles
			if cycles >= begun+collections {
				return true, nil
			}
		}
		return false, nil
	})
	return least, err
}

// peak returns the most memory in bytes that the supervisor had resident since its start (VmHWM).
func (s *supervisorProcess) peak() (int64, error) {
	proc, err := procfs.NewProc(s.process.PID())
	if err != nil {
		return 0, fmt.Errorf("reading the state of the supervisor: %w", err)
	}
	status, err := proc.NewStatus()
	if err != nil {
		return 0, fmt.Errorf("reading the memory of the supervisor: %w", err)
	}
	return int64(status.VmHWM), nil
}

func value(family *dto.MetricFamily) float64 {
	for _, m := range family.GetMetric() {
		return m.GetGauge().GetValue() + m.GetCounter().GetValue()
	}
	return 0
}

func (s *supervisorProcess) scrape(ctx context.Context) (_ map[string]*dto.MetricFamily, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.metrics+"/metrics", http.NoBody)
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
	for _, name := range []string{metricLive, metricCycles} {
		if families[name] == nil {
			return nil, fmt.Errorf("the supervisor has no metric %s", name)
		}
	}
	return families, nil
}

// await waits until a condition holds. It returns an error if the supervisor ends.
func (s *supervisorProcess) await(ctx context.Context, what string, holds wait.ConditionWithContextFunc) error {
	err := wait.PollUntilContextTimeout(ctx, polling, patience, true, func(ctx context.Context) (bool, error) {
		ok, err := holds(ctx)
		if s.process != nil {
			err = errors.Join(err, s.process.Unexpected())
		}
		return ok, err
	})
	if err != nil {
		return fmt.Errorf("waiting for %s: %w", what, err)
	}
	return nil
}

// start starts a program of a folder, which also gets its log.
func start(ctx context.Context, dir, program string, args ...string) (*process.Process, error) {
	return process.Start(ctx, process.Spec{
		Name: program, Path: filepath.Join(dir, program), Args: args, Log: filepath.Join(dir, program+".log"),
	})
}
