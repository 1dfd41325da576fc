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
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/chandlery/chandlery/supervisor/catalogs"
	"github.com/chandlery/chandlery/supervisor/catalogsource"
	"github.com/chandlery/chandlery/supervisor/clusterserviceversion"
	"github.com/chandlery/chandlery/supervisor/copies"
	"github.com/chandlery/chandlery/supervisor/dialproxy"
	"github.com/chandlery/chandlery/supervisor/failover"
	"github.com/chandlery/chandlery/supervisor/farewell"
	"github.com/chandlery/chandlery/supervisor/informer"
	"github.com/chandlery/chandlery/supervisor/installplan"
	"github.com/chandlery/chandlery/supervisor/loan"
	"github.com/chandlery/chandlery/supervisor/operator"
	"github.com/chandlery/chandlery/supervisor/operatorcondition"
	"github.com/chandlery/chandlery/supervisor/operatorgroup"
	"github.com/chandlery/chandlery/supervisor/subscription"
	"github.com/chandlery/chandlery/supervisor/unpack"
)

// shutdownTimeout is how long controllers have to finish what they are at when
// the process stops. It is less than a pod's default grace period of 30 s.
const shutdownTimeout = 20 * time.Second

// deputyPatience is after how many retry periods without a sign of life of the
// leader others deputise. It renews its Lease once in each.
const deputyPatience = 5

// Run runs the controllers until ctx ends. Of several processes one leads and
// works; the others keep caches, connections and snapshots warm and take over
// when the leader stops or fails. Losing the lead is an error: the process has
// to end, so that nothing it had begun goes on beside its successor.
func Run(ctx context.Context, cfg *rest.Config, o Options) error {
	proxies, err := keepFromProxies(cfg)
	if err != nil {
		return err
	}
	ctx, depose := context.WithCancelCause(ctx)
	defer depose(nil)
	f := &fence{clock: clock.RealClock{}, lifetime: o.RenewDeadline, patience: deputyPatience * o.RetryPeriod, depose: depose}
	if err := awaitKinds(ctx, cfg); err != nil {
		return err
	}
	g, err := newGuard(cfg, o, ctrl.LoggerFrom(ctx))
	if err != nil {
		return err
	}
	f.clear = g.clear
	mgr, err := newManager(cfg, o, f)
	if err != nil {
		return err
	}
	if err := preflight(ctx, mgr, o); err != nil {
		return err
	}
	if err := g.admit(ctx); err != nil {
		return err
	}
	if err := addPorts(ctx, mgr, o); err != nil {
		return err
	}
	if err := setup(ctx, mgr, o, proxies, f.standing); err != nil {
		return err
	}
	if err := mgr.Add(&watcher{guard: g, mgr: mgr, namespace: o.LeaderElectionNamespace, depose: depose}); err != nil {
		return fmt.Errorf("preparing to watch for other lifecycle managers: %w", err)
	}
	return start(ctx, mgr)
}

// start runs a manager until ctx ends. Where the process was deposed or refused, its error
// is the cause of that.
func start(ctx context.Context, mgr ctrl.Manager) error {
	err := mgr.Start(ctx)
	if cause := context.Cause(ctx); errors.Is(cause, ErrDeposed) || refusal(cause) {
		return fmt.Errorf("running the controllers: %w", cause)
	}
	if err != nil {
		return fmt.Errorf("running the controllers: %w", err)
	}
	return nil
}

// setup adds every controller to a manager.
func setup(ctx context.Context, mgr ctrl.Manager, o Options, environment dialproxy.Environment, standing func() failover.Standing) error {
	store := catalogs.NewStore(ctx, o.CatalogRefreshInterval, clock.RealClock{})
	store.Proxies = environment
	unpacker, err := unpack.New(unpack.Options{
		Reader: mgr.GetAPIReader(), Dir: o.BundleCacheDir, Size: o.BundleCacheSize, Timeout: o.BundleUnpackTimeout,
		PlainHTTP: o.Hosting.PlainHTTP, SkipTLSVerify: o.Hosting.SkipTLSVerify,
	})
	if err != nil {
		return fmt.Errorf("preparing to unpack bundles: %w", err)
	}
	lender, err := loan.Setup(mgr)
	if err != nil {
		return err
	}
	proxies, err := lookForAPIs(ctx, mgr, o.OpenShift)
	if err != nil {
		return err
	}
	return errors.Join(
		catalogs.Setup(mgr, store),
		unpacker.Setup(mgr),
		catalogsource.Setup(mgr, catalogsource.Options{Store: store, Hosting: o.Hosting}),
		failover.Setup(mgr, failover.Options{
			Store: store, Limits: failover.Limits{Rate: o.FailoverRate, Burst: o.FailoverBurst}, Standing: standing,
		}),
		subscription.Setup(mgr, subscription.Options{
			Catalogs: store, Unpacker: unpacker, GlobalNamespace: o.GlobalCatalogNamespace, Concurrency: o.Concurrency, Lender: lender,
		}),
		installplan.Setup(mgr, installplan.Options{
			Bundles: store, Unpacker: unpacker, RetryTimeout: o.InstallPlanRetryTimeout, Concurrency: o.Concurrency, Lender: lender,
			CRDAsServiceAccount: o.CRDAsServiceAccount,
		}),
		operatorgroup.Setup(mgr, operatorgroup.Options{}), //nolint:contextcheck // its indexes are only noted down
		clusterserviceversion.Setup(mgr, clusterserviceversion.Options{
			Workers: o.Concurrency, Lender: lender, Proxies: proxies, Namespace: podNamespace(),
		}),
		farewell.Setup(mgr, farewell.Options{}),
		copies.Setup(mgr, copies.Options{ProtectedNamespaces: o.ProtectedCopiedCSVNamespaces}), //nolint:contextcheck // its indexes are only noted down
		operatorcondition.Setup(mgr, operatorcondition.Options{}),
		operator.Setup(mgr, operator.Options{}),
	)
}

func newManager(cfg *rest.Config, o Options, f *fence) (ctrl.Manager, error) {
	scheme, err := NewScheme()
	if err != nil {
		return nil, err
	}
	lock, err := resourcelock.NewFromKubeconfig(resourcelock.LeasesResourceLock, o.LeaderElectionNamespace, LeaseName,
		resourcelock.ResourceLockConfig{Identity: uniqueIdentity(o.Identity)}, cfg, o.RenewDeadline)
	if err != nil {
		return nil, fmt.Errorf("preparing leader election on Lease %s/%s: %w", o.LeaderElectionNamespace, LeaseName, err)
	}
	cached, err := cacheOptions()
	if err != nil {
		return nil, err
	}
	guarded, err := fenceWrites(cfg, f, o.LeaseDuration-o.RenewDeadline)
	if err != nil {
		return nil, err
	}
	if err := informer.ReduceWatches(guarded); err != nil {
		return nil, err
	}
	mgr, err := ctrl.NewManager(guarded, ctrl.Options{
		Scheme:    scheme,
		Cache:     cached,
		NewClient: informer.NewClient,
		// What a process finds when it begins is to have its turn like anything else: with
		// priorities, it would wait until nothing at all happens in the cluster.
		Controller:                          config.Controller{UsePriorityQueue: new(false)},
		Metrics:                             metricsserver.Options{BindAddress: "0"}, // see addPorts
		HealthProbeBindAddress:              "0",
		GracefulShutdownTimeout:             new(shutdownTimeout),
		LeaderElection:                      true,
		LeaderElectionResourceLockInterface: &fencedLock{Interface: lock, fence: f},
		LeaderElectionReleaseOnCancel:       true,
		LeaseDuration:                       &o.LeaseDuration,
		RenewDeadline:                       &o.RenewDeadline,
		RetryPeriod:                         &o.RetryPeriod,
	})
	if err != nil {
		return nil, fmt.Errorf("preparing the controllers: %w", err)
	}
	return mgr, nil
}

// cacheOptions says what is kept in memory of what is watched; package informer bounds what
// tenants can make of it. Pods and EndpointSlices are
// those of catalogs only, and of pods and nodes it is kept how they are, by which
// failover goes, and not how they were made. Copies of ClusterServiceVersions, which are
// as many as versions times namespaces, are known by their metadata elsewhere.
func cacheOptions() (cache.Options, error) {
	original, err := labels.NewRequirement(operatorsv1alpha1.CopiedLabelKey, selection.DoesNotExist, nil)
	if err != nil {
		return cache.Options{}, fmt.Errorf("telling copies of ClusterServiceVersions from others: %w", err)
	}
	ofCatalogs := labels.SelectorFromSet(labels.Set{catalogs.LabelManaged: catalogs.LabelManagedValue})
	return cache.Options{
		NewInformer:      informer.New,
		DefaultTransform: informer.Transform,
		ByObject: map[client.Object]cache.ByObject{
			&discoveryv1.EndpointSlice{}:               {Label: ofCatalogs},
			&operatorsv1alpha1.ClusterServiceVersion{}: {Label: labels.NewSelector().Add(*original)},
			&corev1.Pod{}: {Label: ofCatalogs, Transform: informer.After(func(o any) (any, error) {
				if pod, ok := o.(*corev1.Pod); ok {
					pod.Annotations = nil
					pod.Spec = corev1.PodSpec{NodeName: pod.Spec.NodeName}
					pod.Status = corev1.PodStatus{Phase: pod.Status.Phase, Conditions: pod.Status.Conditions}
				}
				return o, nil
			})},
			&corev1.Node{}: {Transform: informer.After(func(o any) (any, error) {
				if node, ok := o.(*corev1.Node); ok {
					node.Annotations = nil
					node.Spec = corev1.NodeSpec{}
					node.Status = corev1.NodeStatus{Conditions: node.Status.Conditions}
				}
				return o, nil
			})},
		},
	}, nil
}

// errCachesCold says that the process has not yet read what it works on.
var errCachesCold = errors.New("the caches are being filled")

// cachesSynced makes a process ready, leading or not, when its caches are full.
func cachesSynced(c cache.Cache) healthz.Checker {
	const patience = 100 * time.Millisecond
	return func(req *http.Request) error {
		ctx, cancel := context.WithTimeout(req.Context(), patience)
		defer cancel()
		if !c.WaitForCacheSync(ctx) {
			return errCachesCold
		}
		return nil
	}
}

// preflight finds what would keep the controllers from ever starting, and says
// so soon instead of after minutes of waiting for caches.
func preflight(ctx context.Context, mgr ctrl.Manager, o Options) error {
	err := mgr.GetAPIReader().Get(ctx, client.ObjectKey{Name: o.LeaderElectionNamespace}, &corev1.Namespace{})
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("the namespace %s of --leader-election-namespace does not exist; create it or name another one", o.LeaderElectionNamespace)
	}
	// Whether the namespace may be read is no matter: only the Lease has to be.
	return nil
}

// Kinds that are applied together with the supervisor are served a moment later
// than it starts.
const (
	kindsPatience = 10 * time.Second
	kindsPoll     = 500 * time.Millisecond
)

// awaitKinds waits until the API server serves the kinds that are worked on. A manager
// cannot be made before: its cache asks for the scope of those that it treats differently.
func awaitKinds(ctx context.Context, cfg *rest.Config) error {
	httpClient, err := rest.HTTPClientFor(cfg)
	if err != nil {
		return fmt.Errorf("preparing to ask the API server at %s: %w", cfg.Host, err)
	}
	mapper, err := apiutil.NewDynamicRESTMapper(cfg, httpClient)
	if err != nil {
		return fmt.Errorf("preparing to ask the API server at %s which kinds it serves: %w", cfg.Host, err)
	}
	var missing []string
	err = wait.PollUntilContextTimeout(ctx, kindsPoll, kindsPatience, true, func(context.Context) (bool, error) {
		first := missing == nil
		var err error
		missing, err = missingKinds(mapper, cfg.Host)
		if first && len(missing) > 0 {
			ctrl.Log.Info("Waiting for kinds of operators.coreos.com", "missing", missing, "patience", kindsPatience.String())
		}
		return len(missing) == 0, err
	})
	if len(missing) > 0 {
		return fmt.Errorf("the cluster lacks the kinds %s of operators.coreos.com; run: supervisor install-crds", strings.Join(missing, ", "))
	}
	return err //nolint:wrapcheck // the callback's errors are wrapped, a cancellation is the caller's own
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
