package clusterserviceversion

import (
	"context"
	"fmt"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	operatorsv2 "github.com/operator-framework/api/pkg/operators/v2"
	"github.com/prometheus/client_golang/prometheus"
	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/chandlery/chandlery/supervisor/apply"
	"github.com/chandlery/chandlery/supervisor/apply/warnings"
	"github.com/chandlery/chandlery/supervisor/catalogs"
	"github.com/chandlery/chandlery/supervisor/controllers/clusterserviceversion/cleanup"
	"github.com/chandlery/chandlery/supervisor/controllers/clusterserviceversion/webhook"
	"github.com/chandlery/chandlery/supervisor/informer"
	"github.com/chandlery/chandlery/supervisor/operatorproxy"
	"github.com/chandlery/chandlery/supervisor/plansteps"
	"github.com/chandlery/chandlery/supervisor/rbac/grant"
	"github.com/chandlery/chandlery/supervisor/rbac/impersonate"
)

// reconcileTimeout bounds one reconcile, so that a hanging API call cannot block a worker.
const reconcileTimeout = 2 * time.Minute

// Options configures the controller. The zero value of each field but CRDs works.
type Options struct {
	// CRDs is the cache of the CustomResourceDefinitions, from package crdcache.
	CRDs cache.Cache
	// Clock is the source of time for limits and for the status; the system clock when nil.
	Clock clock.PassiveClock
	// Grants gives the supervisor temporary permissions to the custom resources of operators. Without
	// one, resources that it may not delete stay.
	Grants *grant.Granter
	// BundleKinds are the kinds that plans may contain in addition to OLM's.
	BundleKinds plansteps.Kinds
	// Namespace is the namespace of the supervisor. No webhook is called for its objects. It is
	// empty outside a cluster.
	Namespace string
	// GlobalNamespace is the namespace whose catalogs serve every namespace.
	GlobalNamespace string
	// Proxies provides the proxies of the cluster; none when nil.
	Proxies *operatorproxy.Variables
	// Workers is the number of objects that are reconciled at the same time; 4 when zero or
	// negative.
	Workers int
	// Metrics is the registry of the metrics; controller-runtime's registry when nil.
	Metrics prometheus.Registerer
}

func (o Options) withDefaults() Options {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.Workers <= 0 {
		o.Workers = 4
	}
	if o.Metrics == nil {
		o.Metrics = metrics.Registry
	}
	return o
}

// Setup adds the controller to a manager, and the one of orphaned APIServices. The scheme of the manager must have
// operators.coreos.com/v1alpha1, v1 and v2 and the kinds of Kubernetes. The controller works on the
// leader only and fills its caches on standbys too.
func Setup(mgr ctrl.Manager, o Options) error {
	o = o.withDefaults()
	webhooks, err := webhook.NewCache(mgr)
	if err != nil {
		return err
	}
	r, err := newReconciler(mgr, o, o.CRDs, webhooks)
	if err != nil {
		return err
	}
	if err := addIndexes(mgr.GetFieldIndexer()); err != nil {
		return err
	}
	m := mapper{reader: mgr.GetClient(), global: o.GlobalNamespace}
	err = watchProxies(ctrl.NewControllerManagedBy(mgr), m, o.Proxies).
		Named("clusterserviceversion").
		For(&operatorsv1alpha1.ClusterServiceVersion{}).
		Watches(&operatorsv1alpha1.ClusterServiceVersion{}, handler.EnqueueRequestsFromMapFunc(m.relatedVersions),
			builder.WithPredicates(informer.IgnoreCauses())).
		Watches(&operatorsv1.OperatorGroup{}, handler.EnqueueRequestsFromMapFunc(m.forOperatorGroup)).
		Watches(&operatorsv1alpha1.Subscription{}, handler.EnqueueRequestsFromMapFunc(m.forSubscription)).
		Watches(catalogs.NewObject(), handler.EnqueueRequestsFromMapFunc(m.forCatalog), builder.WithPredicates(pullSecretChanges())).
		Watches(&operatorsv2.OperatorCondition{}, handler.EnqueueRequestsFromMapFunc(m.forOperatorCondition)).
		Watches(&appsv1.Deployment{}, handler.EnqueueRequestsFromMapFunc(m.forDeployment)).
		WatchesMetadata(accountMetadata(), handler.EnqueueRequestsFromMapFunc(m.forServiceAccount)).
		Watches(&rbacv1.Role{}, handler.EnqueueRequestsFromMapFunc(m.forRBAC)).
		Watches(&rbacv1.RoleBinding{}, handler.EnqueueRequestsFromMapFunc(m.forRBAC)).
		Watches(&rbacv1.ClusterRole{}, handler.EnqueueRequestsFromMapFunc(m.forRBAC)).
		Watches(&rbacv1.ClusterRoleBinding{}, handler.EnqueueRequestsFromMapFunc(m.forRBAC)).
		WatchesRawSource(source.Kind(o.CRDs, &apiextensionsv1.CustomResourceDefinition{},
			handler.TypedEnqueueRequestsFromMapFunc[*apiextensionsv1.CustomResourceDefinition, reconcile.Request](m.forCRD), definitionChanges())).
		WatchesRawSource(source.Kind(o.CRDs, &apiextensionsv1.CustomResourceDefinition{}, recordedVersions())).
		WatchesRawSource(webhooks.Source(m.forOwnedObject)).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: o.Workers,
			EnableWarmup:            new(true),
			ReconciliationTimeout:   reconcileTimeout,
			RateLimiter:             apply.RateLimiter(),
		}).
		Complete(r)
	if err != nil {
		return fmt.Errorf("setting up the ClusterServiceVersion controller: %w", err)
	}
	return setupOrphans(mgr, o.Clock)
}

func newReconciler(mgr ctrl.Manager, o Options, crds, webhooks cache.Cache) (*reconciler, error) {
	discover, err := discovery.NewDiscoveryClientForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("making a discovery client: %w", err)
	}
	cfg := rest.CopyConfig(mgr.GetConfig())
	cfg.WarningHandler, cfg.WarningHandlerWithContext = nil, warnings.Handler{}
	options := client.Options{Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper()}
	deployer, err := client.New(cfg, options)
	if err != nil {
		return nil, fmt.Errorf("making the client that writes Deployments: %w", err)
	}
	g, err := newGauges(o.Metrics)
	if err != nil {
		return nil, fmt.Errorf("registering the metrics of ClusterServiceVersions: %w", err)
	}
	c, live := mgr.GetClient(), mgr.GetAPIReader()
	accounts := impersonate.New(cfg, client.New, options)
	served := &discoveryCache{
		list: discover.ServerResourcesForGroupVersionWithContext,
		group: func(ctx context.Context, name string) error {
			return discover.RESTClient().Get().AbsPath("/apis", name).Do(ctx).Error() //nolint:wrapcheck // wrapped by the caller, who looks for NotFound
		},
		clock: o.Clock,
	}
	serverVersion := func() (string, error) {
		info, err := discover.ServerVersion()
		if err != nil {
			return "", fmt.Errorf("GET /version: %w", err)
		}
		return info.GitVersion, nil
	}
	recorder, attempts := mgr.GetEventRecorder("chandlery-clusterserviceversion"), &refusedAttempts{}
	webhookObserver, webhookWriter := webhook.New(webhook.Options{
		Client: c, Live: live, CRDs: crds, Cache: webhooks, Accounts: accounts, Events: recorder, Namespace: o.Namespace,
	})
	reader := deploymentReader{client: c, live: live, catalogs: mgr.GetCache(), proxies: o.Proxies, global: o.GlobalNamespace}
	return &reconciler{
		client: c,
		clock:  o.Clock,
		observer: &observer{
			client: c, live: live, crds: crds, discoveryCache: served, serverVersion: serverVersion, clock: o.Clock,
			deployments: reader, webhooks: webhookObserver, refusedAttempts: attempts,
		},
		installer: &installer{
			client: c, live: live, derived: reader, webhooks: webhookWriter,
			deployments: deploymentWriter{client: c, live: live, deployer: deployer, accounts: accounts, events: recorder},
		},
		writer: &versionWriter{client: c, clock: o.Clock},
		cleaner: cleanup.New(cleanup.Options{
			Client: c, Live: live, CRDs: crds, HasGroup: served.hasGroup, Accounts: accounts, Grants: o.Grants, BundleKinds: o.BundleKinds, Clock: o.Clock,
		}),
		refusedAttempts: attempts,
		events:          recorder,
		gauges:          g,
	}, nil
}
