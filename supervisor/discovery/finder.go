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

// Options are the settings of a [Finder]; the zero Options are valid.
type Options struct {
	// Keep is how long an Installed result is cached, KeepOther how long any other one is. The defaults for zero are
	// ten minutes and half a minute. A call of [Finder.Invalidate] ends both.
	Keep, KeepOther time.Duration
	// Patience is the timeout of one request; ten seconds if zero.
	Patience time.Duration
	// Clock returns the time; the system clock if nil.
	Clock clock.PassiveClock
}

// A Finder checks APIs of one cluster, as one user. It is safe for concurrent use: concurrent calls for the
// same target share the requests.
type Finder struct {
	asker   *asker
	options Options
	flights singleflight.Group

	mu         sync.Mutex
	known      map[Target]Result
	generation int
	settled    time.Time
}

// settling is how long after a change results are not cached. Changes of definitions are visible before the API
// server serves the new kinds or stops serving the old ones.
const settling = 5 * time.Second

// New returns a Finder for the API server of a configuration. It sends no request.
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

// Find checks a target, or returns a cached result. With [Required], the error is the error of the result, for
// every outcome but Installed. With other settings, an error means that ctx has ended or the target is invalid.
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
	// Calls after a change of the cluster do not share the requests of earlier calls.
	key := fmt.Sprintf("%d %#v", generation, target)
	flight := f.flights.DoChan(key, func() (any, error) {
		// Another call may have ended since the cache was read.
		if known, now, ok := f.remember(target); ok && now == generation {
			return known, nil
		}
		// A caller that cancels does not cancel the requests of the others. Each request has its own timeout.
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

// remember returns the cached result of a target, unless it has expired.
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

// note caches a result, unless the cluster has changed since the request or shortly before.
func (f *Finder) note(target Target, result Result, generation int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if generation == f.generation && !result.At.Before(f.settled) {
		f.known[target] = result
	}
}

// Invalidate clears the cache. Later calls ask the cluster.
func (f *Finder) Invalidate() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.generation++
	f.settled = f.options.Clock.Now().Add(settling)
	clear(f.known)
}

// Handler returns a handler that invalidates the cache when objects are created, deleted or changed. It is for
// informers of CustomResourceDefinitions and APIServices; their metadata suffices.
func (f *Finder) Handler() cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { f.Invalidate() },
		UpdateFunc: func(before, after any) {
			b, okBefore := before.(metav1.Object)
			a, okAfter := after.(metav1.Object)
			// A resync delivers unchanged objects.
			if !okBefore || !okAfter || b.GetResourceVersion() != a.GetResourceVersion() {
				f.Invalidate()
			}
		},
		DeleteFunc: func(any) { f.Invalidate() },
	}
}
