package compattest

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/test/controlplane"
	"github.com/chandlery/chandlery/test/olmobjects"
	"github.com/chandlery/chandlery/test/pause"
)

// Stages are actions on the whole cluster, such as a restart of the supervisor, that several cases
// share. Each action runs once, when every case has ended or waits for it or for a later one. No
// other test may run at the same time.
type Stages struct {
	actions []Action
	// cases run the cases of Check.
	cases []func()

	mu      sync.Mutex
	changed *sync.Cond
	// next is the index of the next action.
	next int
	// waiting is the index of the action that each case waits for, by the rule of the case.
	waiting map[string]int
	err     error
}

// Action changes the whole cluster.
type Action func(context.Context) error

// NewStages returns the actions in the order in which they run.
func NewStages(actions ...Action) *Stages {
	s := &Stages{actions: actions, waiting: map[string]int{}}
	s.changed = sync.NewCond(&s.mu)
	return s
}

// Check adds a case. It calls reach with the index of an action to wait until that action has run.
func (s *Stages) Check(t *testing.T, id string, run func(t *testing.T, c *Cluster, reach func(stage int))) {
	t.Helper()
	rule, checked := find(t, id)
	if !checked {
		return
	}
	s.await(id, -1)
	s.cases = append(s.cases, func() {
		defer s.await(id, len(s.actions))
		t.Run(id, func(t *testing.T) {
			needsOwnCluster(t)
			skipUntried(t, rule)
			skipUnavailable(t, rule)
			run(t, newCluster(t, rule), func(stage int) {
				t.Helper()
				s.await(id, stage)
				if err := s.reach(t.Context(), stage); err != nil {
					t.Fatal(err)
				}
			})
		})
	})
}

// Run runs the cases, all at the same time: a limit of parallel tests would keep some from beginning while the others
// wait for them.
func (s *Stages) Run() {
	var running sync.WaitGroup
	for _, c := range s.cases {
		running.Go(c)
	}
	running.Wait()
}

// await records the action that a case waits for: -1 at its begin, and the number of actions at its end.
func (s *Stages) await(id string, stage int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting[id] = stage
	s.changed.Broadcast()
}

// reach waits until an action has run. The last case that arrives runs it. An action that no case waits for is left out.
func (s *Stages) reach(ctx context.Context, stage int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.next <= stage && s.err == nil {
		ready, wanted := true, false
		for _, at := range s.waiting {
			ready = ready && at >= s.next
			wanted = wanted || at == s.next
		}
		if !ready {
			s.changed.Wait()
			continue
		}
		if wanted {
			s.err = s.actions[s.next](ctx)
		}
		s.next++
		s.changed.Broadcast()
	}
	return s.err
}

// Prepared does nothing: it is the stage at which all cases are prepared.
func Prepared(context.Context) error { return nil }

// StopManager stops the supervisor or OLM.
func StopManager(context.Context) error { return target.started.Stop(grace) }

// StartManager starts the supervisor or OLM again. It stops it first if no case waited for StopManager: two supervisors
// would run otherwise.
func StartManager(ctx context.Context) error {
	return errors.Join(target.started.Stop(grace), target.restart(ctx))
}

// RestartAfter stops the supervisor or OLM, and starts it again after a time.
func RestartAfter(outage time.Duration) Action {
	return func(ctx context.Context) error {
		if err := StopManager(ctx); err != nil {
			return err
		}
		pause.For(ctx, outage)
		return StartManager(ctx)
	}
}

// InterruptAPIServer kills the API server, and starts it again after a time.
func InterruptAPIServer(outage time.Duration) Action {
	return func(ctx context.Context) error {
		if err := target.plane.KillComponent(controlplane.KubeAPIServer); err != nil {
			return err
		}
		pause.For(ctx, outage)
		return target.plane.StartComponent(ctx, controlplane.KubeAPIServer)
	}
}

// ChangeLeader starts a second supervisor with another --install-plan-retry-timeout, and stops the first one. OLM has
// no second replica, so it is restarted.
func ChangeLeader(retryTimeout time.Duration) Action {
	if target.olm {
		return RestartManager(retryTimeout)
	}
	return func(ctx context.Context) error {
		standby, err := runSupervisor(ctx, "standby", retryTimeout)
		if err != nil {
			return err
		}
		if err := target.started.Stop(grace); err != nil {
			return err
		}
		target.started = standby
		return nil
	}
}

// RestartManager stops the supervisor, acts, and starts the supervisor with another --install-plan-retry-timeout. If
// OLM is tested, it only restarts OLM.
func RestartManager(retryTimeout time.Duration, between ...Action) Action {
	if target.olm {
		between = nil
	}
	return func(ctx context.Context) error {
		failures := []error{target.started.Stop(grace)}
		for _, act := range between {
			failures = append(failures, act(ctx))
		}
		return errors.Join(append(failures, startWith(ctx, retryTimeout))...)
	}
}

// Command runs a command of the supervisor in the cluster.
func Command(args ...string) Action {
	return func(ctx context.Context) error {
		args := append(slices.Clip(args), "--kubeconfig", target.kubeconfig)
		if out, err := exec.CommandContext(ctx, supervisor(), args...).CombinedOutput(); err != nil {
			return fmt.Errorf("supervisor %s: %w\n%s", args[0], err, out)
		}
		return nil
	}
}

// InstallOLM creates the Deployments of OLM, which do not run, so that the supervisor can take over from it.
func InstallOLM(ctx context.Context) error {
	c, err := newClient()
	if err != nil {
		return err
	}
	return olmobjects.New(c).InstallOLM(ctx)
}

// RemoveOLM deletes the Deployments of InstallOLM.
func RemoveOLM(ctx context.Context) error {
	c, err := newClient()
	if err != nil {
		return err
	}
	return c.DeleteAllOf(ctx, &appsv1.Deployment{}, client.InNamespace(olmobjects.Namespace))
}
