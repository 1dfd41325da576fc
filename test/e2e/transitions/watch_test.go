package transitions_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/chandlery/chandlery/test/pause"
	"github.com/chandlery/chandlery/test/sampling"
)

const (
	// plans is the number of InstallPlans, unless $PLANS is set. perNamespace is the number in each namespace.
	plans, perNamespace = 1000, 10
	// changes is the largest number of changes of Subscriptions, for each InstallPlan, between two
	// failures of supervisors.
	changes = 3
	// hands is the number of concurrent changes.
	hands = 12
	// rest is the time without events after which the test ends.
	rest = 5 * time.Second
	// whole bounds the test.
	whole = 12 * time.Minute
)

// TestEveryTransitionIsTold sets many InstallPlans to random stages, faster than supervisors can
// react, while supervisors are killed, stopped and replaced, and sometimes none runs. A client that
// watches the Subscriptions must see every stage of every InstallPlan in order, and the transition
// logs must agree.
func TestEveryTransitionIsTold(t *testing.T) {
	seed := number(t, "SEED", rand.Uint64())
	n := sampling.Number(t, "PLANS", plans, 1)
	t.Logf("%d plans; SEED=%d does the same again", n, seed)
	ctx, cancel := context.WithTimeoutCause(t.Context(), whole, errImpatient)
	defer cancel()
	begin := time.Now()

	w := newWorld(t, min(n, perNamespace))
	d := &drive{world: w, seed: seed, o: w.observe()}
	d.hand = hand{c: w.Client, o: d.o, turns: make(chan struct{}, hands)}
	s := w.newCrew()
	s.start(2)

	unrest, calm := context.WithCancel(ctx)
	var (
		running sync.WaitGroup
		done    map[string]int
		failure error
	)
	running.Go(func() { done, failure = s.unrest(unrest, rand.New(rand.NewPCG(seed, 0)), d.o, changes*n) })
	err := d.all(ctx, n)
	driven := time.Since(begin)
	calm()
	running.Wait()
	if err := errors.Join(err, failure); err != nil {
		t.Fatal(err)
	}
	s.bury()
	if err := s.refill(ctx); err != nil {
		t.Fatal(err)
	}
	d.settles(ctx)
	sum := d.o.audit(t)
	t.Logf("%d edits and %d deletions in %s, at rest after %s; %d transitions, %d of them seen afterwards; %d phases left unacknowledged after the time for it, %d by mistake; supervisors: %v",
		d.edits.Load(), d.deletions.Load(), driven.Round(time.Second), time.Since(begin).Round(time.Second), sum.transitions, sum.afterwards, sum.unacknowledged, sum.mistaken, done)
}

// number returns the number in an environment variable, or a default.
func number(t *testing.T, name string, otherwise uint64) uint64 {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("$%s is %q; it has to be a number", name, text)
	}
	return n
}

// drive changes InstallPlans.
type drive struct {
	*world
	hand

	seed                   uint64
	o                      *observer
	edits, deletions, gone atomic.Int64
}

// all creates n Subscriptions and changes the InstallPlan of each.
func (d *drive) all(ctx context.Context, n int) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var running sync.WaitGroup
	for place := range (n + perNamespace - 1) / perNamespace {
		own := min(perNamespace, n-place*perNamespace)
		running.Go(func() {
			if err := d.populate(ctx, place, own); err != nil {
				cancel(err)
				return
			}
			for i := range own {
				running.Go(func() {
					switch err := d.life(ctx, place, i); {
					case errors.Is(err, errGone):
						d.gone.Add(1)
						d.T.Error(err)
					case err != nil:
						cancel(err)
					}
				})
			}
		})
	}
	running.Wait()
	return context.Cause(ctx)
}

func (d *drive) populate(ctx context.Context, place, own int) error {
	defer d.turn()()
	return d.place(ctx, place, own, func(i int) bool { return waits(d.dice(place, i)) })
}

// waits reports, with the first random number, whether an InstallPlan waits for approval. Most do,
// because an installation costs far more than the watched changes.
func waits(dice *rand.Rand) bool { return dice.IntN(4) > 0 }

// dice returns the random numbers of one Subscription. The seed determines the changes of its
// InstallPlan, but not their exact times.
func (d *drive) dice(place, i int) *rand.Rand {
	return rand.New(rand.NewPCG(d.seed, uint64(1+place*perNamespace+i)))
}

// life performs the changes of the InstallPlan of one Subscription.
func (d *drive) life(ctx context.Context, place, i int) error {
	key := types.NamespacedName{Namespace: fmt.Sprintf("%s%d", d.prefix(), place), Name: packageName(i)}
	dice := d.dice(place, i)
	if waits(dice) {
		return d.youth(ctx, key, dice)
	}
	err := d.o.await(ctx, key, "the end of the installation", func(s *story) bool {
		return s.plan != nil && stageOf(s.plan) == complete && s.subscription != nil && s.subscription.Status.InstalledCSV != ""
	})
	if err != nil {
		return err
	}
	if err := d.bursts(ctx, key, dice, []stage{unreconciled, asking, working, failed, broken, complete, checked}); err != nil {
		return err
	}
	if dice.IntN(4) == 0 {
		d.deletions.Add(1)
		return d.removes(ctx, key, true)
	}
	return d.asks(ctx, key, `{"approved":true}`)
}

// checked is a failed stage with another reason.
var checked = stage{phase: "Failed", reason: "InstallCheckFailed"}

// youth changes an InstallPlan that waits for approval. Some are approved in the end. It is never
// set to Complete, because it has installed nothing.
func (d *drive) youth(ctx context.Context, key types.NamespacedName, dice *rand.Rand) error {
	err := d.o.await(ctx, key, "a plan that asks", func(s *story) bool { return s.plan != nil && stageOf(s.plan) == asking })
	if err != nil {
		return err
	}
	if err := d.bursts(ctx, key, dice, []stage{unreconciled, asking, working, failed, broken, checked}); err != nil {
		return err
	}
	return d.asks(ctx, key, fmt.Sprintf(`{"approved":%t}`, dice.IntN(5) == 0))
}

// bursts makes changes in quick succession, once or twice.
func (d *drive) bursts(ctx context.Context, key types.NamespacedName, dice *rand.Rand, stages []stage) error {
	for range 1 + dice.IntN(2) {
		if !pause.For(ctx, time.Duration(dice.Int64N(int64(10*time.Second)))) {
			return context.Cause(ctx)
		}
		if err := d.burst(ctx, key, dice, stages); err != nil {
			return err
		}
	}
	return nil
}

// burst makes a few changes immediately after each other.
func (d *drive) burst(ctx context.Context, key types.NamespacedName, dice *rand.Rand, stages []stage) error {
	for range 2 + dice.IntN(4) {
		d.edits.Add(1)
		var err error
		switch dice.IntN(8) {
		case 0:
			err = d.asks(ctx, key, fmt.Sprintf(`{"approved":%t}`, dice.IntN(2) == 0))
		case 1:
			err = d.asks(ctx, key, `{"approval":"Manual","approved":false}`)
		default:
			err = d.moves(ctx, key, stages[dice.IntN(len(stages))])
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// settles waits until every Subscription shows the last stage of its InstallPlan and there are no
// more events. After a timeout, the audit reports what is missing.
func (d *drive) settles(ctx context.Context) {
	d.T.Helper()
	ctx, cancel := context.WithTimeoutCause(ctx, patience, errImpatient)
	defer cancel()
	behind := 0
	for _, key := range d.o.keys() {
		if err := d.o.await(ctx, key, "rest", caughtUp); err != nil {
			behind++
			if behind <= 3 {
				d.T.Errorf("%v", err)
			}
		}
	}
	if behind > 0 {
		d.T.Errorf("%d Subscriptions never came to rest", behind)
	}
	for d.o.quiet() < rest && pause.For(ctx, rest/10) {
	}
}
