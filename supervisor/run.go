package supervisor

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/apiserver/availability"
	"github.com/chandlery/chandlery/supervisor/bundleimage"
	"github.com/chandlery/chandlery/supervisor/bundleimage/nodepull"
	"github.com/chandlery/chandlery/supervisor/catalogs"
	"github.com/chandlery/chandlery/supervisor/catalogs/contentcache"
	"github.com/chandlery/chandlery/supervisor/controllers/catalogsource"
	"github.com/chandlery/chandlery/supervisor/controllers/clusterserviceversion"
	"github.com/chandlery/chandlery/supervisor/controllers/copiedcsv"
	"github.com/chandlery/chandlery/supervisor/controllers/failover"
	"github.com/chandlery/chandlery/supervisor/controllers/installplan"
	"github.com/chandlery/chandlery/supervisor/controllers/operator"
	"github.com/chandlery/chandlery/supervisor/controllers/operatorcondition"
	"github.com/chandlery/chandlery/supervisor/controllers/operatorgroup"
	"github.com/chandlery/chandlery/supervisor/controllers/packagemanifest"
	"github.com/chandlery/chandlery/supervisor/controllers/subscription"
	"github.com/chandlery/chandlery/supervisor/imagepolicy"
	"github.com/chandlery/chandlery/supervisor/imagesources"
	"github.com/chandlery/chandlery/supervisor/informer"
	"github.com/chandlery/chandlery/supervisor/informer/crdcache"
	"github.com/chandlery/chandlery/supervisor/informer/groupindex"
	"github.com/chandlery/chandlery/supervisor/rbac/grant"
)

// shutdownTimeout is how long controllers may take to finish when the process stops. It is less than a pod's
// default grace period of 30 s.
const shutdownTimeout = 20 * time.Second

// missedRenewals is the number of retry periods without a renewal by the leader after which standbys mark
// unreachable replicas. A leader renews its Lease once in each.
const missedRenewals = 5

// Run runs the controllers until ctx ends. One of several processes leads and works. The others keep caches,
// connections and snapshots current, and take over when the leader stops or fails. Losing the lead is an error.
// The process must then end, so that no operation continues beside its successor. A leader that finds another
// lifecycle manager stops its controllers, and starts them again as a process that waits.
//
// If the API server cannot be reached at the start, Run waits for it. Run returns no error if ctx ends before
// the controllers have started.
//
// With PackageManifests in mode Only, it runs a package server instead.
func Run(ctx context.Context, cfg *rest.Config, o Options) error {
	if o.PackageManifests.Mode == packagemanifest.Only {
		return runPackageServer(ctx, cfg, o)
	}
	proxies, err := excludeFromProxies(cfg)
	if err != nil {
		return err
	}
	ctx, cancelRun := context.WithCancelCause(ctx)
	defer cancelRun(nil)
	monitor := availability.NewMonitor(availability.Config{Server: cfg.Host, Log: ctrl.LoggerFrom(ctx), Clock: clock.RealClock{}})
	ready := &readiness{monitor: monitor}
	waits, err := newWaitReporter(cfg, o, ctrl.LoggerFrom(ctx), ready.setWaiting)
	if err != nil {
		return err
	}
	served, err := openPorts(ctx, cfg, o, ready)
	if err != nil {
		return err
	}
	stop := served.serve(ctx, cancelRun)
	for {
		err = (&startup{cfg: cfg, options: o, proxies: proxies, monitor: monitor, ready: ready, waits: waits}).run(ctx)
		if !errors.Is(err, errSteppedDown) || ctx.Err() != nil {
			return errors.Join(err, stop())
		}
		if err := resetMetrics(); err != nil {
			return errors.Join(err, stop())
		}
		// The caches of the stopped controllers are garbage, and those of the next ones are as large.
		debug.FreeOSMemory()
	}
}

// resetMetrics deletes the series of objects that stopped controllers have left. Nothing updates them while another
// lifecycle manager works, and the next controllers count all objects again.
func resetMetrics() error {
	catalogsource.ResetMetrics()
	failover.ResetMetrics()
	installplan.ResetMetrics()
	packagemanifest.ResetMetrics()
	subscription.ResetMetrics()
	return errors.Join(clusterserviceversion.ResetMetrics(), copiedcsv.ResetMetrics())
}

// setup adds every controller to a manager.
func (s *startup) setup(ctx context.Context, mgr ctrl.Manager, role func() failover.Role) error {
	o := s.options
	store, err := s.newStore(ctx)
	if err != nil {
		return err
	}
	settings := imagesources.New(o.Catalogs.Registries, o.Catalogs.SharedSecrets())
	settings.UseProxy(o.Catalogs.Proxy)
	settings.AwaitMirrors()
	nodes, err := s.newNodePuller(mgr)
	if err != nil {
		return err
	}
	policies := imagepolicy.New(o.Catalogs.Registries.Config)
	policies.AwaitNodePolicies()
	images, err := bundleimage.New(bundleimage.Options{
		Reader: mgr.GetAPIReader(), Nodes: nodes, Dir: o.Caches.BundleDir, Size: o.Caches.BundleSize, Timeout: o.BundleUnpackTimeout,
		Sources: settings, Policies: policies, PlainHTTP: o.Catalogs.PlainHTTP, SkipTLSVerify: o.Catalogs.SkipTLSVerify,
	})
	if err != nil {
		return fmt.Errorf("preparing to unpack bundles: %w", err)
	}
	grants, err := grant.Setup(mgr)
	if err != nil {
		return err
	}
	crds, err := crdcache.Add(mgr)
	if err != nil {
		return err
	}
	if err := groupindex.Add(ctx, mgr.GetFieldIndexer()); err != nil {
		return err
	}
	proxies, err := s.operatorProxies(ctx, mgr, crds, settings, policies)
	if err != nil {
		return err
	}
	err = errors.Join(
		catalogs.Setup(mgr, store),
		images.Setup(mgr),
		mgr.Add(settings),
		mgr.Add(policies),
		catalogsource.Setup(mgr, catalogsource.Options{Store: store, Config: o.Catalogs, Sources: settings, Policies: policies}),
		failover.Setup(mgr, failover.Options{
			Store: store, Limits: failover.Limits{Rate: o.FailoverRate, Burst: o.FailoverBurst}, Role: role,
		}),
		subscription.Setup(mgr, subscription.Options{
			Catalogs: store, Images: images, GlobalNamespace: o.GlobalCatalogNamespace, Concurrency: o.Concurrency, Grants: grants,
			BundleKinds: o.InstallPlans.BundleKinds,
		}),
		installplan.Setup(mgr, installplan.Options{ //nolint:contextcheck // its indexes are only noted down
			Settings: o.InstallPlans, CRDs: crds, Bundles: store, Images: images, Concurrency: o.Concurrency, Grants: grants,
		}),
		operatorgroup.Setup(mgr, operatorgroup.Options{}), //nolint:contextcheck // its indexes are only noted down
		clusterserviceversion.Setup(mgr, clusterserviceversion.Options{ //nolint:contextcheck // its indexes are only noted down
			CRDs: crds, Workers: o.Concurrency, Grants: grants, BundleKinds: o.InstallPlans.BundleKinds, Proxies: proxies, Namespace: podNamespace(),
			GlobalNamespace: o.GlobalCatalogNamespace,
		}),
		copiedcsv.Setup(mgr, copiedcsv.Options{ProtectedNamespaces: o.ProtectedCopiedCSVNamespaces}), //nolint:contextcheck // its indexes are only noted down
		operatorcondition.Setup(mgr, operatorcondition.Options{}),
		operator.Setup(mgr, operator.Options{CRDs: crds}), //nolint:contextcheck // its indexes are only noted down
	)
	packages, failed := packagemanifest.Setup(ctx, mgr, packagemanifest.Options{
		Setting: o.PackageManifests, Store: store, Config: s.cfg, GlobalNamespace: o.GlobalCatalogNamespace, Namespace: podNamespace(),
	})
	s.ready.usePackages(packages)
	return errors.Join(err, failed)
}

// newNodePuller adds to a manager what lets nodes pull bundle images.
func (s *startup) newNodePuller(mgr ctrl.Manager) (bundleimage.Nodes, error) {
	logs, err := nodepull.NewLogs(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return bundleimage.Nodes{}, err //nolint:wrapcheck // says what failed
	}
	puller := nodepull.New(nodepull.Options{
		Settings: nodepull.Settings{RegistryImage: s.options.Catalogs.RegistryImage, SetUserID: s.options.Catalogs.SetWorkloadUserID},
		Client:   mgr.GetClient(), Reader: mgr.GetAPIReader(), Logs: logs, Clock: clock.RealClock{},
	})
	if err := mgr.Add(puller); err != nil {
		return bundleimage.Nodes{}, fmt.Errorf("adding the pulls of bundle images by nodes: %w", err)
	}
	return bundleimage.Nodes{Mode: s.options.ImagePull, Puller: puller}, nil
}

// newStore returns the store of catalogs, which keeps contents on disk if a directory is set.
func (s *startup) newStore(ctx context.Context) (*catalogs.Store, error) {
	store := catalogs.NewStore(ctx, s.options.CatalogRefreshInterval, clock.RealClock{})
	store.Proxies = s.proxies
	if s.options.Caches.CatalogDir == "" {
		return store, nil
	}
	contents, err := contentcache.Open(s.options.Caches.CatalogDir, s.options.Caches.CatalogSize)
	if err != nil {
		return nil, err //nolint:wrapcheck // names the flag
	}
	s.contents = catalogs.NewContentStore(contents)
	store.Contents = s.contents
	return store, nil
}

// newManager returns the manager of a supervisor.
func (s *startup) newManager(f *fence) (ctrl.Manager, error) {
	o := s.options
	shared, err := managerOptions(s.cfg, o, api.LeaseName)
	if err != nil {
		return nil, err
	}
	shared.MapperProvider = s.newMapper
	shared.LeaderElectionResourceLockInterface = &fencedLock{
		Interface: shared.LeaderElectionResourceLockInterface, fence: f, monitor: s.monitor, pause: o.RetryPeriod,
	}
	guarded, err := fenceWrites(s.cfg, f, o.LeaseDuration-o.RenewDeadline)
	if err != nil {
		return nil, err
	}
	if err := informer.ReduceReplies(guarded); err != nil {
		return nil, err
	}
	guarded.Wrap(s.monitor.Observe(s.filling, "filling the caches"))
	mgr, err := ctrl.NewManager(guarded, shared)
	if err != nil {
		return nil, fmt.Errorf("preparing the controllers: %w", err)
	}
	return mgr, nil
}

// managerOptions returns the options that the managers of a supervisor and of a package server share.
func managerOptions(cfg *rest.Config, o Options, lease string) (ctrl.Options, error) {
	scheme, err := NewScheme()
	if err != nil {
		return ctrl.Options{}, err
	}
	lock, err := resourcelock.NewFromKubeconfig(resourcelock.LeasesResourceLock, o.LeaderElectionNamespace, lease,
		resourcelock.ResourceLockConfig{Identity: uniqueIdentity(o.Identity)}, cfg, o.RenewDeadline)
	if err != nil {
		return ctrl.Options{}, fmt.Errorf("preparing leader election on Lease %s/%s: %w", o.LeaderElectionNamespace, lease, err)
	}
	cached, err := cacheOptions()
	if err != nil {
		return ctrl.Options{}, err
	}
	return ctrl.Options{
		Scheme:    scheme,
		Cache:     cached,
		NewClient: informer.NewClient,
		// Objects that exist at the start must not have a lower priority. With priorities, they would wait until
		// nothing else happens in the cluster. awaitCaches also bounds the caches of the manager.
		// A process that has stepped down adds controllers of the same names again.
		Controller: config.Controller{
			UsePriorityQueue: new(false), CacheSyncTimeout: controllerCacheTimeout, SkipNameValidation: new(true),
		},
		Metrics:                             metricsserver.Options{BindAddress: "0"}, // see openPorts
		HealthProbeBindAddress:              "0",
		GracefulShutdownTimeout:             new(shutdownTimeout),
		LeaderElection:                      true,
		LeaderElectionResourceLockInterface: lock,
		LeaderElectionReleaseOnCancel:       true,
		LeaseDuration:                       &o.LeaseDuration,
		RenewDeadline:                       &o.RenewDeadline,
		RetryPeriod:                         &o.RetryPeriod,
	}, nil
}

// cacheOptions returns which objects and fields are cached; package informer bounds what tenants can create.
// Pods and EndpointSlices are those of catalogs only. Of pods, the cache has the node, the phase and the
// conditions, and of nodes the conditions. Failover reads these. Copies of ClusterServiceVersions, whose number
// is versions times namespaces, are cached as metadata elsewhere.
func cacheOptions() (cache.Options, error) {
	original, err := labels.NewRequirement(operatorsv1alpha1.CopiedLabelKey, selection.DoesNotExist, nil)
	if err != nil {
		return cache.Options{}, fmt.Errorf("telling copies of ClusterServiceVersions from others: %w", err)
	}
	ofCatalogs := labels.SelectorFromSet(labels.Set{api.LabelManaged: catalogs.LabelManagedValue})
	return cache.Options{
		NewInformer:      informer.New,
		DefaultTransform: informer.Transform,
		ByObject: map[client.Object]cache.ByObject{
			&discoveryv1.EndpointSlice{}:               {Label: ofCatalogs},
			&operatorsv1alpha1.ClusterServiceVersion{}: {Label: labels.NewSelector().Add(*original)},
			&corev1.Pod{}: {Label: ofCatalogs, Transform: informer.TransformAfter(func(o any) (any, error) {
				if pod, ok := o.(*corev1.Pod); ok {
					pod.Annotations = nil
					pod.Spec = corev1.PodSpec{NodeName: pod.Spec.NodeName}
					pod.Status = corev1.PodStatus{Phase: pod.Status.Phase, Conditions: pod.Status.Conditions}
				}
				return o, nil
			})},
			&corev1.Node{}: {Transform: informer.TransformAfter(func(o any) (any, error) {
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
