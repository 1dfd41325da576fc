package transitions_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor"
	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/test/controlplane"
	"github.com/chandlery/chandlery/test/pause"
	"github.com/chandlery/chandlery/test/process"
)

// Short lease times permit many hand-overs. They have the order of the defaults.
const (
	leaseDuration = 4 * time.Second
	renewDeadline = 3 * time.Second
	retryPeriod   = 500 * time.Millisecond
	// grace bounds the stop of a supervisor.
	grace = 30 * time.Second
)

// crew is the set of supervisors of one test. Each is a process.
type crew struct {
	t *testing.T
	c client.Client
	// namespace holds their Lease and their global catalogs.
	namespace string

	mu      sync.Mutex
	members []*process.Process
	hired   int
}

// newCrew returns an empty crew.
func (w *world) newCrew() *crew {
	return &crew{t: w.T, c: w.Client, namespace: w.Namespace}
}

// hire starts one more supervisor.
func (s *crew) hire(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hired++
	name := fmt.Sprintf("member-%d", s.hired)
	p, err := process.Start(ctx, process.Spec{
		Name: name,
		Path: filepath.Join(bin, "member"),
		Args: []string{
			"--kubeconfig", controlplane.Get(s.t).Kubeconfig(),
			"--identity", name,
			"--leader-election-namespace", s.namespace, "--global-catalog-namespace", s.namespace,
			"--lease-duration", leaseDuration.String(), "--renew-deadline", renewDeadline.String(), "--retry-period", retryPeriod.String(),
			"--concurrency", "16", "--metrics-address", "0", "--health-address", "0",
		},
		Log: filepath.Join(s.t.ArtifactDir(), name+".log"),
	})
	if err != nil {
		return err
	}
	s.members = append(s.members, p)
	s.t.Cleanup(func() {
		if err := p.Kill(); err != nil {
			s.t.Error(err)
		}
	})
	return nil
}

// start starts a number of supervisors.
func (s *crew) start(n int) {
	s.t.Helper()
	for range n {
		if err := s.hire(s.t.Context()); err != nil {
			s.t.Fatal(err)
		}
	}
}

// dismiss ends the supervisors with selected indexes.
func (s *crew) dismiss(which func(int) bool, how func(*process.Process) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var (
		kept     []*process.Process
		failures []error
	)
	for i, p := range s.members {
		if !which(i) {
			kept = append(kept, p)
			continue
		}
		failures = append(failures, how(p))
	}
	s.members = kept
	return errors.Join(failures...)
}

func everybody(int) bool { return true }

func kill(p *process.Process) error { return p.Kill() }

func stop(p *process.Process) error { return p.Stop(grace) }

// bury removes supervisors that have exited, as they do after losing the Lease, and returns their number.
func (s *crew) bury() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	var alive []*process.Process
	for _, p := range s.members {
		if err := p.Unexpected(); err != nil {
			s.t.Logf("%v", err)
			continue
		}
		alive = append(alive, p)
	}
	lost := len(s.members) - len(alive)
	s.members = alive
	return lost
}

// leader returns the index of the holder of the Lease; negative if there is none.
func (s *crew) leader(ctx context.Context) int {
	lease := &coordinationv1.Lease{}
	if err := s.c.Get(ctx, client.ObjectKey{Namespace: s.namespace, Name: api.LeaseName}, lease); err != nil {
		return -1
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, p := range s.members {
		if p.Name() == supervisor.IdentityOf(ptr.Deref(lease.Spec.HolderIdentity, "")) {
			return i
		}
	}
	return -1
}

// tenure bounds how long a supervisor may lead without progress.
const tenure = 20 * time.Second

// unrest ends supervisors at random moments until the context ends, and returns how often each
// action was done. A moment is a random number of changes, at most most, so there is progress on a
// slow machine, too.
func (s *crew) unrest(ctx context.Context, dice *rand.Rand, o *observer, most int) (map[string]int, error) {
	done := map[string]int{}
	for {
		for s.leader(ctx) < 0 {
			// A supervisor that loses the Lease exits. Without a leader there is none to end.
			for range s.bury() {
				done["lost the lead by itself"]++
			}
			if err := s.refill(ctx); err != nil {
				return done, err
			}
			if !pause.For(ctx, retryPeriod) {
				return done, nil
			}
		}
		moment := o.count() + dice.IntN(most)
		for begin := time.Now(); o.count() < moment && time.Since(begin) < tenure; {
			if !pause.For(ctx, retryPeriod/10) {
				return done, nil
			}
		}
		what, err := s.disturb(ctx, dice)
		done[what]++
		if err != nil {
			return done, fmt.Errorf("%s: %w", what, err)
		}
		if err := s.refill(ctx); err != nil {
			return done, err
		}
	}
}

// refill starts supervisors until there are two.
func (s *crew) refill(ctx context.Context) error {
	for {
		s.mu.Lock()
		n := len(s.members)
		s.mu.Unlock()
		if n >= 2 {
			return nil
		}
		if err := s.hire(ctx); err != nil {
			return err
		}
	}
}

// disturb does one action to the crew.
func (s *crew) disturb(ctx context.Context, dice *rand.Rand) (string, error) {
	leader := s.leader(ctx)
	leading := func(i int) bool { return i == leader }
	following := func(i int) bool { return leader >= 0 && i != leader }
	switch n := dice.IntN(10); {
	case n < 4:
		return "leader killed", s.dismiss(leading, kill)
	case n < 6:
		return "leader stopped", s.dismiss(leading, stop)
	case n < 7:
		return "standby killed", s.dismiss(following, kill)
	case n < 9:
		err := s.dismiss(everybody, kill)
		pause.For(ctx, time.Second+time.Duration(dice.Int64N(int64(4*time.Second))))
		return "both killed, and away for a while", err
	default:
		err := s.dismiss(everybody, stop)
		pause.For(ctx, time.Second+time.Duration(dice.Int64N(int64(4*time.Second))))
		return "both stopped, and away for a while", err
	}
}
