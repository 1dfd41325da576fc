package scale

import (
	"context"
	"errors"
	"fmt"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/test/audit"
)

// reached waits until an object of a kind is as wanted in each of some namespaces, or the context
// ends. It has no limit of its own.
func (m *OLM) reached(ctx context.Context, names []string, list client.ObjectList, wanted func(client.Object) bool) error {
	waiting := make(map[string]bool, len(names))
	for _, name := range names {
		waiting[name] = true
	}
	for len(waiting) > 0 {
		if err := m.cluster.plane.watch(ctx, list, waiting, wanted); err != nil {
			return fmt.Errorf("waiting for %d of %d namespaces, watching %T: %w", len(waiting), len(names), list, errors.Join(context.Cause(ctx), err))
		}
	}
	return nil
}

func isDefaultAccount(o client.Object) bool { return o.GetName() == "default" }

func isReconciledGroup(o client.Object) bool {
	group, is := o.(*operatorsv1.OperatorGroup)
	return is && len(group.Status.Namespaces) > 0
}

func isComplete(o client.Object) bool {
	plan, is := o.(*operatorsv1alpha1.InstallPlan)
	return is && plan.Status.Phase == operatorsv1alpha1.InstallPlanPhaseComplete
}

func hasFailed(o client.Object) bool {
	plan, is := o.(*operatorsv1alpha1.InstallPlan)
	return is && plan.Status.Phase == operatorsv1alpha1.InstallPlanPhaseFailed
}

func isSucceeded(o client.Object) bool {
	csv, is := o.(*operatorsv1alpha1.ClusterServiceVersion)
	return is && !csv.IsCopied() && csv.Status.Phase == operatorsv1alpha1.CSVPhaseSucceeded
}

// idle waits until OLM has sent no request for some time, and returns the requests since the last
// call. It ignores watches, which last longer than a batch. OLM renews no Lease.
func (m *OLM) idle(ctx context.Context) ([]audit.Request, error) {
	// OLM repeats some work after 5 s.
	const rest = 8 * time.Second
	var (
		all  []audit.Request
		last = time.Now()
	)
	p := m.cluster.plane
	err := wait.PollUntilContextCancel(ctx, polling, true, func(context.Context) (bool, error) {
		fresh, err := p.log.Next()
		if err != nil {
			return false, err
		}
		for _, r := range fresh {
			if r.User == p.account && r.Verb != "watch" {
				all, last = append(all, r), time.Now()
			}
		}
		return time.Since(last) >= rest, nil
	})
	if err != nil {
		return all, fmt.Errorf("waiting for OLM to be idle: %w", errors.Join(context.Cause(ctx), err))
	}
	return all, nil
}

// olmMeasurement is the state of OLM's counters.
type olmMeasurement struct {
	// usage is the sum over both programs.
	usage
	componentTimes
}

func (m *OLM) measure() (olmMeasurement, error) {
	var n olmMeasurement
	for _, pid := range m.peer.PIDs() {
		one, err := usageOf(pid)
		if err != nil {
			return n, err
		}
		n.processor, n.memory, n.resident = n.processor+one.processor, n.memory+one.memory, n.resident+one.resident
	}
	var err error
	n.componentTimes, err = m.cluster.plane.componentTimes()
	return n, err
}
