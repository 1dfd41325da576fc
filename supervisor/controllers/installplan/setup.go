package installplan

import (
	"fmt"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/chandlery/chandlery/supervisor/apply/warnings"
	"github.com/chandlery/chandlery/supervisor/plansteps"
	"github.com/chandlery/chandlery/supervisor/rbac/grant"
	"github.com/chandlery/chandlery/supervisor/rbac/impersonate"
)

// Defaults of Options.
const (
	// DefaultAcknowledgeTimeout bounds how long a phase waits for the Subscriptions.
	DefaultAcknowledgeTimeout = 5 * time.Second
	// DefaultMinForeignPhaseDuration is how long a phase stays that another client wrote.
	DefaultMinForeignPhaseDuration = 3 * time.Second
)

// reconcileTimeout bounds one pass, so that a hanging call cannot block a worker. It allows time to
// check the custom resources of a large cluster.
const reconcileTimeout = 5 * time.Minute

// Settings are the settings that users may change.
type Settings struct {
	// RetryTimeout is how long a step may fail with a lasting error before the plan fails.
	RetryTimeout time.Duration
	// CRDAsServiceAccount selects the rights of the OperatorGroup's service account to write
	// CustomResourceDefinitions, where the group names one, instead of the supervisor's.
	CRDAsServiceAccount bool
	// BundleKinds are the kinds that plans may contain in addition to OLM's.
	BundleKinds plansteps.Kinds
}

// Options are what the controller needs besides the manager.
type Options struct {
	Settings

	// CRDs is the cache of the CustomResourceDefinitions, from package crdcache.
	CRDs cache.Cache
	// Bundles reads manifests to which plans refer.
	Bundles bundleReader
	// Images reads the manifests in bundle images. Without one, plans that refer to such images
	// fail.
	Images imageReader
	// Clock is the source of time; the real clock when nil.
	Clock clock.PassiveClock
	// AcknowledgeTimeout bounds how long the next phase of a plan waits for Subscriptions that do
	// not show the current one. Zero means DefaultAcknowledgeTimeout; a negative value means no
	// wait.
	AcknowledgeTimeout time.Duration
	// MinForeignPhaseDuration is how long a phase stays that another client wrote. Zero means
	// DefaultMinForeignPhaseDuration; a negative value means no wait.
	MinForeignPhaseDuration time.Duration
	// Concurrency is the number of plans that are reconciled at the same time.
	Concurrency int
	// Config is the client configuration for the objects of steps; the manager's when nil.
	Config *rest.Config
	// Grants gives the supervisor temporary permissions to read custom resources. Without one,
	// definitions whose objects it may not list do not change.
	Grants *grant.Granter
	// NewClient creates the clients from Config; client.New when nil.
	NewClient client.NewClientFunc
}

func (o Options) withDefaults(mgr ctrl.Manager) Options {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.AcknowledgeTimeout == 0 {
		o.AcknowledgeTimeout = DefaultAcknowledgeTimeout
	}
	if o.MinForeignPhaseDuration == 0 {
		o.MinForeignPhaseDuration = DefaultMinForeignPhaseDuration
	}
	if o.Config == nil {
		o.Config = mgr.GetConfig()
	}
	if o.NewClient == nil {
		o.NewClient = client.New
	}
	return o
}

// Setup adds the controller to a manager.
func Setup(mgr ctrl.Manager, o Options) error {
	r, err := newReconciler(mgr, o.withDefaults(mgr))
	if err != nil {
		return err
	}
	if err := addIndex(mgr.GetFieldIndexer()); err != nil {
		return err
	}
	initMetrics(o.BundleKinds)
	plans := &planMapper{client: r.client, records: r.records}
	err = ctrl.NewControllerManagedBy(mgr).
		Named("installplan").
		For(&operatorsv1alpha1.InstallPlan{}, builder.WithPredicates(r.gate.entries.predicate())).
		Watches(&operatorsv1alpha1.Subscription{}, handler.EnqueueRequestsFromMapFunc(planOfSubscription)).
		Watches(&operatorsv1.OperatorGroup{}, handler.EnqueueRequestsFromMapFunc(plans.inNamespace)).
		WatchesMetadata(accountMetadata(), handler.EnqueueRequestsFromMapFunc(plans.withAccount)).
		Watches(&rbacv1.Role{}, handler.EnqueueRequestsFromMapFunc(plans.withPermissions)).
		Watches(&rbacv1.RoleBinding{}, handler.EnqueueRequestsFromMapFunc(plans.withPermissions)).
		Watches(&rbacv1.ClusterRole{}, handler.EnqueueRequestsFromMapFunc(plans.withPermissions)).
		Watches(&rbacv1.ClusterRoleBinding{}, handler.EnqueueRequestsFromMapFunc(plans.withPermissions)).
		WatchesRawSource(source.Kind(o.CRDs, &apiextensionsv1.CustomResourceDefinition{},
			handler.TypedEnqueueRequestsFromMapFunc[*apiextensionsv1.CustomResourceDefinition, reconcile.Request](plans.awaitingKind), definitionChanged())).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: o.Concurrency, EnableWarmup: new(true), ReconciliationTimeout: reconcileTimeout,
			// The limit lets plans continue soon after an outage of the API server, however long it
			// was.
			RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](50*time.Millisecond, maxPauseUnanswered),
		}).
		Complete(r)
	if err != nil {
		return fmt.Errorf("setting up the InstallPlan controller: %w", err)
	}
	return nil
}

func newReconciler(mgr ctrl.Manager, o Options) (*reconciler, error) {
	cfg := rest.CopyConfig(o.Config)
	cfg.WarningHandler, cfg.WarningHandlerWithContext = nil, warnings.Handler{}
	options := client.Options{Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper()}
	direct, err := o.NewClient(cfg, options)
	if err != nil {
		return nil, fmt.Errorf("making the client that applies steps: %w", err)
	}
	discover, err := discovery.NewDiscoveryClientForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("making a discovery client: %w", err)
	}
	return &reconciler{
		client: mgr.GetClient(),
		live:   mgr.GetAPIReader(),
		executor: &executor{
			cached: mgr.GetClient(), direct: direct, accounts: impersonate.New(cfg, o.NewClient, options), grants: o.Grants,
			bundles: o.Bundles, images: o.Images, kinds: o.BundleKinds, crdsAsAccount: o.CRDAsServiceAccount, crdLocks: newCRDLocks(), equalCRDs: &equalCRDs{},
			served: discover.ServerResourcesForGroupVersionWithContext,
		},
		gate:                    &phaseGate{cached: mgr.GetClient(), live: mgr.GetAPIReader(), entries: &phaseEntries{}, timeout: o.AcknowledgeTimeout},
		recorder:                mgr.GetEventRecorder("chandlery-installplan"),
		clock:                   o.Clock,
		records:                 &planRecords{},
		series:                  &planSeries{},
		retryTimeout:            o.RetryTimeout,
		minForeignPhaseDuration: max(0, o.MinForeignPhaseDuration),
	}, nil
}
