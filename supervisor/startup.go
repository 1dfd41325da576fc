package supervisor

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	operatorsv2 "github.com/operator-framework/api/pkg/operators/v2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/chandlery/chandlery/supervisor/apiserver/availability"
	"github.com/chandlery/chandlery/supervisor/catalogs"
	"github.com/chandlery/chandlery/supervisor/catalogs/dialproxy"
	"github.com/chandlery/chandlery/supervisor/informer"
)

// errSteppedDown means that the controllers have stopped because another lifecycle manager works, and that nothing of
// them is left.
var errSteppedDown = errors.New("stepped down")

// startup starts the supervisor. It repeats each of its requests while the API server cannot be reached.
type startup struct {
	cfg     *rest.Config
	options Options
	proxies dialproxy.Environment
	// contents are the contents of catalogs on disk; nil for none.
	contents  *catalogs.ContentStore
	monitor   *availability.Monitor
	ready     *readiness
	waits     *waitReporter
	cancelRun context.CancelCauseFunc
	// preparing ends when the manager starts, and filling when its caches are full.
	preparing, filling context.Context //nolint:containedctx // transports and mappers outlive calls
	prepared, filled   context.CancelFunc
}

// await calls f until the API server has answered, and returns its error. After the manager has started, it
// does not repeat f.
func (s *startup) await(what string, f func() error) error {
	return s.monitor.Retry(s.preparing, what, availability.MaxPause, f) //nolint:wrapcheck // f's own error
}

// run runs the controllers until ctx ends, or until they stop themselves.
func (s *startup) run(ctx context.Context) error {
	ctx, s.cancelRun = context.WithCancelCause(ctx)
	defer s.cancelRun(nil)
	mgr, err := s.prepare(ctx)
	switch {
	case err == nil:
		s.ready.use(s.readyToServe(cachesSynced(mgr.GetCache())))
		return s.start(ctx, mgr)
	case errors.Is(context.Cause(ctx), context.Canceled):
		ctrl.LoggerFrom(ctx).Info("Stopped before the controllers had started", "while", err.Error())
		return nil
	default:
		return err
	}
}

// readyToServe returns a check that the caches are full, and that missing contents of catalogs have been fetched.
func (s *startup) readyToServe(synced func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		if err := synced(ctx); err != nil {
			return err
		}
		return s.contents.Ready() //nolint:wrapcheck // says what is missing
	}
}

// prepare creates the manager with all controllers.
func (s *startup) prepare(ctx context.Context) (ctrl.Manager, error) {
	s.preparing, s.prepared = context.WithCancel(ctx)
	s.filling, s.filled = context.WithCancel(ctx)
	o := s.options
	f := &fence{clock: clock.RealClock{}, renewDeadline: o.RenewDeadline, leaderTimeout: missedRenewals * o.RetryPeriod, cancelRun: s.cancelRun}
	if err := s.awaitKinds(ctx); err != nil {
		return nil, err
	}
	g := newManagerChecker(o, s.waits)
	f.beforeLeading = g.checkBeforeLeading
	mgr, err := s.newManager(f)
	if err != nil {
		return nil, err
	}
	if err := g.use(ctx, mgr.GetCache()); err != nil {
		return nil, err
	}
	if err := s.preflight(ctx, mgr); err != nil {
		return nil, err
	}
	if err := s.await("looking for other lifecycle managers", func() error { return g.checkBeforeStart(ctx) }); err != nil {
		return nil, err
	}
	if err := s.setup(ctx, mgr, f.role); err != nil {
		return nil, err
	}
	if err := mgr.Add(&managerWatcher{managerChecker: g, mgr: mgr, namespace: o.LeaderElectionNamespace, cancelRun: s.cancelRun}); err != nil {
		return nil, fmt.Errorf("preparing to watch for other lifecycle managers: %w", err)
	}
	return mgr, nil
}

// start runs a manager until ctx ends. If this process has ended it, the error is the cause. The error is
// errSteppedDown only if all controllers have ended in time.
func (s *startup) start(ctx context.Context, mgr ctrl.Manager) error {
	s.prepared()
	go func() {
		defer s.filled()
		if err := s.awaitCaches(ctx, mgr.GetCache()); err != nil {
			s.cancelRun(err)
		}
	}()
	err := mgr.Start(ctx)
	cause := context.Cause(ctx)
	if err == nil && isRefusal(cause) {
		return fmt.Errorf("%w: %w", errSteppedDown, cause)
	}
	if errors.Is(cause, ErrLeaseLost) || errors.Is(cause, errCachesNotSynced) || errors.Is(cause, errServing) || isRefusal(cause) {
		err = cause
	}
	if err != nil {
		return fmt.Errorf("running the controllers: %w", err)
	}
	return nil
}

const (
	// controllerCacheTimeout is how long a controller waits for its caches. Some have separate caches, which awaitCaches
	// does not check. A longer outage ends the process.
	controllerCacheTimeout = 10 * time.Minute
	// cacheSyncTimeout is how long incomplete caches may read nothing while the API server answers. The total time
	// depends on the objects of tenants.
	cacheSyncTimeout = 2 * time.Minute
	// cacheSettleTime is how long caches must be full before they count as complete: controllers add theirs in the
	// first seconds.
	cacheSettleTime   = 30 * time.Second
	cachePollInterval = time.Second
)

// errCachesNotSynced is the error for caches that are not full.
var errCachesNotSynced = errors.New("the caches are being filled")

// awaitCaches waits until the caches are full. It returns an error if they read nothing for cacheSyncTimeout, for
// example if a kind may not be watched. Outages do not count.
func (s *startup) awaitCaches(ctx context.Context, c cache.Cache) error {
	synced := cachesSynced(c)
	begun, full := time.Now(), time.Time{}
	err := wait.PollUntilContextCancel(ctx, cachePollInterval, true, func(ctx context.Context) (bool, error) {
		if synced(ctx) == nil {
			if full.IsZero() {
				full = time.Now()
			}
			return time.Since(full) >= cacheSettleTime, nil
		}
		full = time.Time{}
		if stuckFor(begun, informer.LastPage(), time.Now(), s.monitor.SinceFailure()) >= cacheSyncTimeout {
			return false, fmt.Errorf("%w, and nothing was read for %s though the API server answers; the log names the kinds that cannot be watched", errCachesNotSynced, cacheSyncTimeout)
		}
		return false, nil
	})
	if errors.Is(err, errCachesNotSynced) {
		return err //nolint:wrapcheck // made above
	}
	return nil
}

// stuckFor returns how long caches that started to fill have read nothing. sinceFailure is how long the API
// server has answered.
func stuckFor(begun, lastPage, now time.Time, sinceFailure time.Duration) time.Duration {
	if lastPage.After(begun) {
		begun = lastPage
	}
	return min(now.Sub(begun), sinceFailure)
}

// cachesSynced returns a function that checks whether caches are full.
func cachesSynced(c cache.Cache) func(context.Context) error {
	const timeout = 100 * time.Millisecond
	return func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		if !c.WaitForCacheSync(ctx) {
			return errCachesNotSynced
		}
		return nil
	}
}

// preflight checks for a cause that would prevent the controllers from starting. It fails at once, instead of
// after minutes of waiting for caches.
func (s *startup) preflight(ctx context.Context, mgr ctrl.Manager) error {
	name := s.options.LeaderElectionNamespace
	err := s.await("reading the namespace of the Lease", func() error {
		return mgr.GetAPIReader().Get(ctx, client.ObjectKey{Name: name}, &corev1.Namespace{}) //nolint:wrapcheck // looked at below
	})
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("the namespace %s of --leader-election-namespace does not exist; create it or name another one", name)
	}
	// The process needs no permission to read the namespace, only the Lease.
	return nil
}

// Time limit for kinds that are applied together with the supervisor, which the API server may serve after the
// supervisor starts.
const (
	kindsTimeout      = 10 * time.Second
	kindsPollInterval = 500 * time.Millisecond
)

// awaitKinds waits until the API server serves the required kinds. The manager cannot be created earlier: its
// cache reads the scope of the kinds with special options.
func (s *startup) awaitKinds(ctx context.Context) error {
	httpClient, err := rest.HTTPClientFor(s.cfg)
	if err != nil {
		return fmt.Errorf("preparing to ask the API server at %s: %w", s.cfg.Host, err)
	}
	mapper, err := s.newMapper(s.cfg, httpClient)
	if err != nil {
		return err
	}
	begun, logged := time.Now(), false
	err = wait.PollUntilContextCancel(ctx, kindsPollInterval, true, func(context.Context) (bool, error) {
		missing, err := missingKinds(mapper, s.cfg.Host)
		if err != nil || len(missing) == 0 {
			return err == nil, err
		}
		if !logged {
			ctrl.LoggerFrom(ctx).Info("Waiting for kinds of operators.coreos.com", "missing", missing, "patience", kindsTimeout.String())
			logged = true
		}
		// After an outage, an API server serves definitions only after a moment.
		if min(time.Since(begun), s.monitor.SinceFailure()) < kindsTimeout {
			return false, nil
		}
		return false, fmt.Errorf("the cluster lacks the kinds %s of operators.coreos.com; run: supervisor install-crds", strings.Join(missing, ", "))
	})
	return err //nolint:wrapcheck // the callback's errors are wrapped, a cancellation is the caller's own
}

// newMapper returns a mapper of kinds that waits for the API server until the manager starts. Afterwards its
// callers retry.
func (s *startup) newMapper(cfg *rest.Config, httpClient *http.Client) (apimeta.RESTMapper, error) {
	mapper, err := apiutil.NewDynamicRESTMapper(cfg, httpClient)
	if err != nil {
		return nil, fmt.Errorf("preparing to ask the API server at %s which kinds it serves: %w", cfg.Host, err)
	}
	return &retryingMapper{RESTMapper: mapper, await: s.await}, nil
}

// retryingMapper is a mapper of kinds that repeats its requests.
type retryingMapper struct {
	apimeta.RESTMapper

	await func(what string, f func() error) error
}

// RESTMapping returns the resource of a kind.
func (m *retryingMapper) RESTMapping(kind schema.GroupKind, versions ...string) (mapping *apimeta.RESTMapping, err error) {
	err = m.await("finding out which kinds it serves", func() error {
		mapping, err = m.RESTMapper.RESTMapping(kind, versions...)
		return err //nolint:wrapcheck // callers look at the mapper's own error
	})
	return mapping, err
}

// missingKinds returns the kinds that the API server does not serve.
func missingKinds(mapper apimeta.RESTMapper, host string) ([]string, error) {
	var missing []string
	for _, gvk := range []schema.GroupVersionKind{
		operatorsv1alpha1.SchemeGroupVersion.WithKind(operatorsv1alpha1.CatalogSourceKind),
		operatorsv1alpha1.SchemeGroupVersion.WithKind(operatorsv1alpha1.SubscriptionKind),
		operatorsv1alpha1.SchemeGroupVersion.WithKind(operatorsv1alpha1.InstallPlanKind),
		operatorsv1alpha1.SchemeGroupVersion.WithKind(operatorsv1alpha1.ClusterServiceVersionKind),
		operatorsv1.GroupVersion.WithKind(operatorsv1.OperatorGroupKind),
		operatorsv1.GroupVersion.WithKind("OLMConfig"),
		operatorsv1.GroupVersion.WithKind("Operator"),
		operatorsv2.GroupVersion.WithKind("OperatorCondition"),
	} {
		_, err := mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
		switch {
		case apimeta.IsNoMatchError(err):
			missing = append(missing, gvk.Kind)
		case err != nil:
			return nil, fmt.Errorf("asking the API server at %s which kinds it serves: %w", host, err)
		}
	}
	return missing, nil
}
