package attack

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/chandlery/chandlery/test/controlplane"
)

// Options configure the attack.
type Options struct {
	// Root is the folder of the repository. Dir is a folder with the programs registry and
	// supervisor, for their logs.
	Root, Dir string
	// Objects is the number of large objects of each kind. Size is the size of each in bytes.
	Objects, Size int
	// Kinds are attacked one after the other. The objects of the previous kind are deleted first,
	// unless all kinds are to exist together.
	Kinds    []string
	Together bool
	// Rate is the number of objects that the tenant changes per second.
	Rate float32
	// Duration is how long the objects are changed, divided among the kinds.
	Duration time.Duration
	// Installs is the number of timed installations before the attack, and during it with each kind.
	Installs int
	// Settle is how long the supervisor may work before its live heap is measured.
	Settle time.Duration
	// Plane is an existing control plane with a node and without supervisors; nil to start one, for gigabytes of objects.
	Plane *controlplane.ControlPlane
}

// Stage is the result with the objects of some kinds.
type Stage struct {
	Kinds []string
	// Before, Filled and Restarted are the sizes of the live heap in bytes: without the objects,
	// with all of them, and with all of them after a restart of the supervisor.
	Before, Filled, Restarted int64
	// FilledPeak and RestartedPeak are the maximum resident memory in bytes since the supervisor's start. The first
	// is read after the changes, the second after a restart with the objects present.
	FilledPeak, RestartedPeak int64
	// Ready is the time until the supervisor leads and has read the catalog, with the objects present.
	Ready time.Duration
	// Present are installations in other namespaces while the objects exist. Installs are
	// installations while the tenant changes them.
	Present, Installs []Installation
}

// Result is the result of an attack.
type Result struct {
	// Installs are installations before the attack.
	Installs []Installation
	Stages   []Stage
	// Lost is the number of changes of the leader without a restart by the test.
	Lost int
}

// Growth returns the growth of the live heap in bytes, summed over the stages in which it grew:
// while the supervisor ran, and after a restart.
func (r *Result) Growth() (running, restarted int64) {
	for _, s := range r.Stages {
		running += max(0, s.Filled-s.Before)
		restarted += max(0, s.Restarted-s.Before)
	}
	return running, restarted
}

// MaxGrowth is the limit in bytes of the live heap's growth by a tenant's objects. The growth must be below it.
const MaxGrowth = 30 << 20

// Check returns an error for each violated limit of what a tenant can do.
func (r *Result) Check() error {
	var broken []error
	running, restarted := r.Growth()
	if running >= MaxGrowth || restarted >= MaxGrowth {
		broken = append(broken, fmt.Errorf("the live heap grew by %d KiB, after a restart by %d KiB, want less than %d KiB", running>>10, restarted>>10, MaxGrowth>>10))
	}
	if r.Lost > 0 {
		broken = append(broken, fmt.Errorf("the supervisor lost the lead %d times, want 0", r.Lost))
	}
	return errors.Join(broken...)
}

// Installation holds the times of an installation.
type Installation struct {
	// Took is the time from the creation of the Subscription until the version Succeeded.
	Took time.Duration
	// Rollout is the part of Took that the cluster needed until the version's Deployment was
	// available, in whole seconds. The supervisor waits for it.
	Rollout time.Duration
	// Plain is the median time, during the installation, from a change by a plain client of another Subscription
	// until its watch shows the change. An installation is a chain of such changes.
	Plain time.Duration
}

// Median returns the median of some installations by Took.
func Median(installs []Installation) Installation {
	if len(installs) == 0 {
		return Installation{}
	}
	return slices.SortedFunc(slices.Values(installs), func(a, b Installation) int { return cmp.Compare(a.Took, b.Took) })[len(installs)/2]
}

// String returns the times as text.
func (i Installation) String() string {
	return fmt.Sprintf("%s (roll-out %s, a plain change %s)", i.Took.Round(time.Millisecond), i.Rollout, i.Plain.Round(time.Millisecond))
}

// Run attacks a supervisor and measures it.
func Run(ctx context.Context, o Options) (_ *Result, err error) {
	// Every object is written several times before etcd compacts old revisions.
	quota := int64(o.Objects) * int64(o.Size) * 8
	if o.Together {
		quota *= int64(len(o.Kinds))
	}
	s, err := setUp(ctx, o, max(quota, 2<<30))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.tearDown(ctx)) }()
	if err := s.supervisor.begin(ctx); err != nil {
		return nil, err
	}
	r := &Result{}
	if r.Installs, err = s.installs(ctx, o.Installs); err != nil {
		return nil, err
	}
	pretending, stop := context.WithCancel(ctx)
	pretended := make(chan error, 1)
	go func() { pretended <- s.tenant.pretend(pretending) }()
	defer func() {
		stop()
		err = errors.Join(err, <-pretended)
	}()
	groups := slices.Collect(slices.Chunk(o.Kinds, 1))
	if o.Together {
		groups = [][]string{o.Kinds}
	}
	for _, kinds := range groups {
		stage, lost, err := s.stage(ctx, o, kinds)
		if err != nil {
			return nil, fmt.Errorf("with objects of %v: %w", kinds, err)
		}
		r.Stages, r.Lost = append(r.Stages, stage), r.Lost+lost
		fmt.Fprintln(os.Stderr, stage.String())
	}
	return r, nil
}

// stage fills the cluster with objects and returns how often the leader changed.
func (s *scene) stage(ctx context.Context, o Options, kinds []string) (stage Stage, lost int, err error) {
	stage.Kinds = kinds
	first, err := s.supervisor.lead(ctx)
	if err != nil {
		return stage, 0, err
	}
	if stage.Before, err = s.supervisor.heap(ctx); err != nil {
		return stage, 0, err
	}
	for _, kind := range kinds {
		if err := s.tenant.fill(ctx, s.supervisor, kind, o.Objects, o.Size); err != nil {
			return stage, 0, err
		}
	}
	if stage.Present, err = s.installs(ctx, o.Installs); err != nil {
		return stage, 0, err
	}
	if stage.Installs, err = s.pester(ctx, o, kinds); err != nil {
		return stage, 0, err
	}
	if stage.Filled, err = s.supervisor.heap(ctx); err != nil {
		return stage, 0, err
	}
	if stage.FilledPeak, err = s.supervisor.peak(); err != nil {
		return stage, 0, err
	}
	last, err := s.supervisor.lead(ctx)
	if err != nil {
		return stage, 0, err
	}
	if last != first {
		lost++
	}
	err = s.restarted(ctx, &stage, o.Objects)
	return stage, lost, err
}

// restarted measures a supervisor that starts while the objects exist, and then deletes them.
func (s *scene) restarted(ctx context.Context, stage *Stage, objects int) (err error) {
	if stage.Ready, err = s.supervisor.restart(ctx); err != nil {
		return err
	}
	if stage.Restarted, err = s.supervisor.heap(ctx); err != nil {
		return err
	}
	if stage.RestartedPeak, err = s.supervisor.peak(); err != nil {
		return err
	}
	for _, kind := range stage.Kinds {
		if err := s.clear(ctx, kind, objects); err != nil {
			return err
		}
	}
	return nil
}

// pester changes the objects for a time, and until some timed installations have finished.
func (s *scene) pester(ctx context.Context, o Options, kinds []string) ([]Installation, error) {
	share := o.Duration * time.Duration(len(kinds)) / time.Duration(len(o.Kinds))
	// The rate limiter rejects requests that it cannot serve before a deadline.
	pestering, stop := context.WithCancel(ctx)
	defer stop()
	touched := make(chan error, 1)
	go func() { touched <- s.tenant.touch(pestering, kinds, o.Objects) }()
	begun := time.Now()
	installs, err := s.installs(ctx, o.Installs)
	if err == nil {
		select {
		case <-ctx.Done():
		case <-time.After(share - time.Since(begun)):
		}
	}
	stop()
	return installs, errors.Join(err, <-touched)
}

func (s *scene) installs(ctx context.Context, n int) ([]Installation, error) {
	installs := make([]Installation, 0, n)
	for range n {
		one, err := s.install(ctx)
		if err != nil {
			return nil, err
		}
		installs = append(installs, one)
	}
	return installs, nil
}

// String returns a stage as one line.
func (s *Stage) String() string {
	const mebi = 1 << 20
	return fmt.Sprintf("%s: live heap %.1f MiB, with objects %.1f MiB (peak %.0f MiB), after a restart %.1f MiB (peak %.0f MiB, ready after %s), installation %s, during changes %s",
		strings.Join(s.Kinds, ", "), float64(s.Before)/mebi, float64(s.Filled)/mebi, float64(s.FilledPeak)/mebi,
		float64(s.Restarted)/mebi, float64(s.RestartedPeak)/mebi,
		s.Ready.Round(time.Millisecond), Median(s.Present), Median(s.Installs))
}
