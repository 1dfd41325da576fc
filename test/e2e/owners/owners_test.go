package owners_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chandlery/chandlery/test/pause"
	"github.com/chandlery/chandlery/test/sampling"
)

const (
	// crowd is the number of namespaces in parallel.
	crowd = 48
	// bursts is the number of times that a namespace is changed and becomes idle.
	bursts = 3
)

// TestOwnersOfPlans changes Subscriptions and InstallPlans in random order while supervisors are
// killed and started. Whenever a namespace is idle, its InstallPlans must be owned by exactly the
// Subscriptions that they serve, and be approved by these. At no moment may an InstallPlan have
// fewer owners than it was created for.
func TestOwnersOfPlans(t *testing.T) {
	b := newBed(t, "owners")
	stop := b.fight()
	defer stop()
	b.each(sampling.Number(t, "INTERLEAVINGS", 500, 1), func(a *actor) error {
		for burst := range bursts {
			// Begin with two to four Subscriptions and continue with random actions.
			for range 2 + a.random.IntN(4) {
				if err := a.act(t.Context()); err != nil {
					return err
				}
				if a.random.IntN(2) == 0 {
					pause.For(t.Context(), time.Duration(a.random.IntN(200))*time.Millisecond)
				}
			}
			a.notef("rest %d", burst+1)
			if err := a.rest(t.Context()); err != nil {
				return err
			}
		}
		return nil
	})
}

// each runs a function for a number of namespaces.
func (b *bed) each(n int, run func(*actor) error) {
	b.t.Helper()
	var crew sync.WaitGroup
	free := make(chan struct{}, crowd)
	began := time.Now()
	for i := range n {
		free <- struct{}{}
		crew.Go(func() {
			defer func() { <-free }()
			a, err := newActor(b, i)
			if err == nil {
				err = run(a)
			}
			if err != nil {
				b.t.Errorf("namespace %s (SEED=%d): %v\n%s", a.namespace, b.seed, err, strings.Join(a.diary, "\n"))
			}
		})
	}
	crew.Wait()
	b.t.Logf("%d namespaces in %s", n, time.Since(began).Round(time.Second))
}

// TestApprovalOfTheSet creates a Subscription with manual approval and one with automatic approval,
// in either order and with different pauses, for the same package and for others. Neither may
// affect an unrelated InstallPlan of the other.
func TestApprovalOfTheSet(t *testing.T) {
	b := newBed(t, "approval")
	stop := b.fight()
	defer stop()
	b.each(sampling.Number(t, "INTERLEAVINGS", 200, 1), func(a *actor) error {
		pairs := [][2]string{{"lamp", "clock"}, {"lamp", "lamp"}, {"fan", "radio"}, {"socket", "fan"}, {"fan", "lamp"}}
		pair := pairs[a.random.IntN(len(pairs))]
		manualFirst := a.random.IntN(2) == 0
		steps := []func() error{
			func() error { return a.subscribe(t.Context(), "asks", pair[0], "Manual") },
			func() error { return a.subscribe(t.Context(), "acts", pair[1], "Automatic") },
		}
		if !manualFirst {
			steps[0], steps[1] = steps[1], steps[0]
		}
		apart := pair[0] != pair[1] && pair[0] != "socket" && pair[1] != "radio"
		for _, step := range steps {
			if err := step(); err != nil {
				return err
			}
			pause.For(t.Context(), time.Duration(a.random.IntN(4))*time.Duration(a.random.IntN(400))*time.Millisecond)
		}
		if err := a.rest(t.Context()); err != nil {
			return err
		}
		return a.approvals(t.Context(), apart, manualFirst)
	})
}

// approvals checks the approval in every version of every InstallPlan.
func (a *actor) approvals(_ context.Context, apart, manualFirst bool) error {
	for _, s := range a.witness.of(a.namespace) {
		asks, acts := false, false
		for _, uid := range s.owners {
			asks = asks || uid == a.asks["asks"].UID
			acts = acts || uid == a.asks["acts"].UID
		}
		switch {
		case apart && asks && acts:
			return fmt.Errorf("plan %s for %v belongs to both Subscriptions", s.name, s.versions)
		case asks && !acts && s.approved:
			return fmt.Errorf("plan %s for %v was approved though its Subscription wants to be asked", s.name, s.versions)
		case acts && !asks && (!s.approved || s.approval != "Automatic"):
			return fmt.Errorf("plan %s for %v is %s, approved %v, though its Subscription does not want to be asked", s.name, s.versions, s.approval, s.approved)
		case asks && acts && manualFirst && s.approved:
			return fmt.Errorf("plan %s for %v was approved though one of its Subscriptions wanted to be asked before", s.name, s.versions)
		}
	}
	return nil
}
