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
	// InstalledTTL is how long an Installed result is cached, OtherTTL how long any other one is. The defaults for
	// zero are ten minutes and half a minute. A call of [Finder.Invalidate] ends both.
	InstalledTTL, OtherTTL time.Duration
	// RequestTimeout is the timeout of one request; ten seconds if zero.
	RequestTimeout time.Duration
	// Clock returns the time; the system clock if nil.
	Clock clock.PassiveClock
}

// A Finder checks APIs of one cluster, as one user. It is safe for concurrent use: concurrent calls for the
// same target share the requests.
type Finder struct {
	client  *client
	options Options
	calls   singleflight.Group

	mu          sync.Mutex
	results     map[Target]Result
	generation  int
	settleUntil time.Time
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
	defaulted(&o.InstalledTTL, 10*time.Minute)
	defaulted(&o.OtherTTL, 30*time.Second)
	defaulted(&o.RequestTimeout, 10*time.Second)
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	c, err := newClient(cfg, o.RequestTimeout, o.Clock.Now)
	if err != nil {
		return nil, err
	}
	return &Finder{client: c, options: o, results: map[Target]Result{}}, nil
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
	result, generation, ok := f.cached(target)
	if ok {
		return result, nil
	}
	// Calls after a change of the cluster do not share the requests of earlier calls.
	key := fmt.Sprintf("%d %#v", generation, target)
	done := f.calls.DoChan(key, func() (any, error) {
		// Another call may have ended since the cache was read.
		if result, now, ok := f.cached(target); ok && now == generation {
			return result, nil
		}
		// A caller that cancels does not cancel the requests of the others. Each request has its own timeout.
		result, err := f.client.check(context.WithoutCancel(ctx), setting, target)
		if err == nil {
			f.store(target, result, generation)
		}
		return result, err
	})
	select {
	case <-ctx.Done():
		return Result{}, fmt.Errorf("finding out whether %s is installed: %w", target, context.Cause(ctx))
	case shared := <-done:
		if shared.Err != nil {
			return Result{}, shared.Err
		}
		return shared.Val.(Result), nil //nolint:errcheck,forcetypeassert // the function above returns a Result
	}
}

// cached returns the cached result of a target, unless it has expired.
func (f *Finder) cached(target Target) (result Result, generation int, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	result, ok = f.results[target]
	ttl := f.options.OtherTTL
	if result.Outcome == Installed {
		ttl = f.options.InstalledTTL
	}
	if ok && f.options.Clock.Since(result.At) >= ttl {
		delete(f.results, target)
		ok = false
	}
	return result, f.generation, ok
}

// store caches a result, unless the cluster has changed since the request or shortly before.
func (f *Finder) store(target Target, result Result, generation int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if generation == f.generation && !result.At.Before(f.settleUntil) {
		f.results[target] = result
	}
}

// Invalidate clears the cache. Later calls ask the cluster.
func (f *Finder) Invalidate() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.generation++
	f.settleUntil = f.options.Clock.Now().Add(settling)
	clear(f.results)
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
