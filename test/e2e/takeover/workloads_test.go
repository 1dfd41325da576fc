package takeover_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/test/pause"
	"github.com/chandlery/chandlery/test/process"
)

// workload is a Deployment with simulated pods, and the process that does their work.
type workload struct {
	key   client.ObjectKey
	start func(context.Context) (*process.Process, error)
	// running is the process; nil for none.
	running *process.Process
}

// workloads run each process exactly while its Deployment has replicas.
type workloads struct {
	client.Client

	mu  sync.Mutex
	all []*workload
}

// follow keeps the processes in the state of their Deployments until the test ends, and stops them then.
func (w *workloads) follow(t *testing.T) {
	t.Helper()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for pause.For(t.Context(), 500*time.Millisecond) {
			if err := w.sync(t.Context()); err != nil && t.Context().Err() == nil {
				t.Error(err)
				return
			}
		}
	}()
	t.Cleanup(func() {
		<-ended
		w.mu.Lock()
		defer w.mu.Unlock()
		for _, one := range w.all {
			if one.running != nil {
				if err := one.running.Kill(); err != nil {
					t.Error(err)
				}
			}
		}
	})
}

// sync starts and stops processes, and returns when each is in the state of its Deployment. A process that ended unexpectedly is
// an error.
func (w *workloads) sync(ctx context.Context) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	var errs []error
	for _, one := range w.all {
		errs = append(errs, one.sync(ctx, w.Client))
	}
	return errors.Join(errs...)
}

func (w *workload) sync(ctx context.Context, c client.Reader) (err error) {
	d := &appsv1.Deployment{}
	err = c.Get(ctx, w.key, d)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading Deployment %s: %w", w.key, err)
	}
	desired := err == nil && ptr.Deref(d.Spec.Replicas, 1) > 0
	switch {
	case desired && w.running == nil:
		w.running, err = w.start(ctx)
		return err
	case desired:
		return w.running.Unexpected()
	case w.running != nil:
		// OLM's programs may panic while they stop.
		stopped := w.running.Stop(patience)
		w.running = nil
		if errors.Is(stopped, process.ErrKilled) {
			return stopped
		}
	}
	return nil
}
