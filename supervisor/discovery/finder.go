package discovery

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
)

// Options are the settings of a [Finder]; the zero Options are good.
type Options struct {
	// Keep is how long an Installed is believed, KeepOther any other outcome; zero for
	// ten minutes and for half a minute. What is in the cluster is known to have changed
	// before if [Finder.Invalidate] is called.
	Keep, KeepOther time.Duration
	// Patience is how long one request may take; zero for ten seconds.
	Patience time.Duration
	// Clock is real if nil.
	Clock clock.PassiveClock
}

// A Finder finds out about APIs of one cluster, as one user. It is safe for concurrent
// use: whoever looks for the same at the same time shares the questions.
type Finder struct {
	asker   *asker
	options Options
	flights singleflight.Group

	mu         sync.Mutex
	known      map[Target]Result
	generation int
	settled    time.Time
}

// settling is for how long after a change nothing is kept: definitions are seen to come
// and go before the API server serves what they define, or no longer does.
const settling = 5 * time.Second

// New prepares to ask the API server of a configuration. Nothing is asked yet.
func New(cfg *rest.Config, o Options) (*Finder, error) {
	defaulted := func(d *time.Duration, value time.Duration) {
		if *d == 0 {
			*d = value
		}
	}
	defaulted(&o.Keep, 10*time.Minute)
	defaulted(&o.KeepOther, 30*time.Second)
	defaulted(&o.Patience, 10*time.Second)
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	a, err := newAsker(cfg, o.Patience, o.Clock.Now)
	if err != nil {
		return nil, err
	}
	return &Finder{asker: a, options: o, known: map[Target]Result{}}, nil
}

// Find finds out about a target, or remembers. With [Required] the error is the one of
// the result, for every outcome but Installed. Else it is one of asking at all: ctx has
// ended, or the target cannot be asked for.
func (f *Finder) Find(ctx context.Context, setting Setting, target Target) (Result, error) {
	if setting == Disabled {
		step := Next(setting, Facts{})
		return Result{Target: target, Verdict: step.Verdict, At: f.options.Clock.Now()}, nil
	}
	if err := target.validate(); err != nil {
		return Result{}, err
	}
	result, err := f.find(ctx, setting, target)
	if err != nil {
		return Result{}, err
	}
	if setting == Required {
		err = result.Err()
	}
	return result, err
}

func (f *Finder) find(ctx context.Context, setting Setting, target Target) (Result, error) {
	known, generation, ok := f.remember(target)
	if ok {
		return known, nil
	}
	// Whoever comes after the cluster has changed does not join those who asked before.
	key := fmt.Sprintf("%d %#v", generation, target)
	flight := f.flights.DoChan(key, func() (any, error) {
		// Another flight may have ended since the caller looked.
		if known, now, ok := f.remember(target); ok && now == generation {
			return known, nil
		}
		// One caller that goes away does not take the answer from the others. Each request
		// has its own end.
		result, err := f.asker.find(context.WithoutCancel(ctx), setting, target)
		if err == nil {
			f.note(target, result, generation)
		}
		return result, err
	})
	select {
	case <-ctx.Done():
		return Result{}, fmt.Errorf("finding out whether %s is installed: %w", target, context.Cause(ctx))
	case landed := <-flight:
		if landed.Err != nil {
			return Result{}, landed.Err
		}
		return landed.Val.(Result), nil //nolint:errcheck,forcetypeassert // it is what the flight returns
	}
}

// remember returns what is known of a target and has not expired.
func (f *Finder) remember(target Target) (known Result, generation int, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	known, ok = f.known[target]
	keep := f.options.KeepOther
	if known.Outcome == Installed {
		keep = f.options.Keep
	}
	if ok && f.options.Clock.Since(known.At) >= keep {
		delete(f.known, target)
		ok = false
	}
	return known, f.generation, ok
}

// note keeps a result, unless the cluster has changed since it was asked for, or only just.
func (f *Finder) note(target Target, result Result, generation int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if generation == f.generation && !result.At.Before(f.settled) {
		f.known[target] = result
	}
}

// Invalidate forgets everything: what is asked for from now on is asked of the cluster.
func (f *Finder) Invalidate() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.generation++
	f.settled = f.options.Clock.Now().Add(settling)
	clear(f.known)
}

// Handler invalidates when objects come, go or change. It is for informers of
// CustomResourceDefinitions and APIServices, of their metadata alone if need be.
func (f *Finder) Handler() cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { f.Invalidate() },
		UpdateFunc: func(before, after any) {
			b, okBefore := before.(metav1.Object)
			a, okAfter := after.(metav1.Object)
			// A resync tells of objects that have not changed.
			if !okBefore || !okAfter || b.GetResourceVersion() != a.GetResourceVersion() {
				f.Invalidate()
			}
		},
		DeleteFunc: func(any) { f.Invalidate() },
	}
}
