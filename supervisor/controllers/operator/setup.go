package operator

import (
	"fmt"
	"slices"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/apply"
	"github.com/chandlery/chandlery/supervisor/informer"
)

// reconcileTimeout limits one reconciliation, so that a hanging API call cannot block a worker.
const reconcileTimeout = time.Minute

// Options configures the controllers of this package. The zero value of each field but CRDs works.
type Options struct {
	// CRDs is the cache of CustomResourceDefinitions of package crdcache.
	CRDs cache.Cache
	// Clock provides the times for pacing writes; the system clock if nil.
	Clock clock.PassiveClock
	// Workers is the number of objects that each controller reconciles concurrently; 2 if zero.
	Workers int
}

func (o Options) withDefaults() Options {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.Workers <= 0 {
		o.Workers = 2
	}
	return o
}

// Setup adds the controllers to a manager. The manager's scheme must contain
// operators.coreos.com/v1, v1alpha1 and v2 and the built-in kinds. The controllers run on the
// leader only and fill their caches on standbys too.
func Setup(mgr ctrl.Manager, o Options) error {
	o = o.withDefaults()
	managed, err := newManagedCache(mgr)
	if err != nil {
		return err
	}
	caches := caches{shared: mgr.GetCache(), managed: managed, definitions: o.CRDs, live: mgr.GetAPIReader()}
	if err := addIndexes(caches); err != nil {
		return err
	}
	if err := setupOperators(mgr, o, caches); err != nil {
		return fmt.Errorf("setting up the Operator controller: %w", err)
	}
	if err := setupLabels(mgr, o, caches); err != nil {
		return fmt.Errorf("setting up the labelling of components: %w", err)
	}
	if err := setupPlans(mgr, o); err != nil {
		return fmt.Errorf("setting up the controller of superseded InstallPlans: %w", err)
	}
	return nil
}

func setupOperators(mgr ctrl.Manager, o Options, c caches) error {
	r := &reconciler{
		observer: &observer{readers: c.readers(), known: map[string]map[types.UID]observedConditions{}},
		client:   mgr.GetClient(),
		clock:    o.Clock,
	}
	b := ctrl.NewControllerManagedBy(mgr).Named("operator").
		Watches(&operatorsv1.Operator{}, enqueueOperators(r.delay, nameOf, changedOperator))
	for _, k := range kinds() {
		if !k.named {
			b = b.WatchesRawSource(source.Kind(c.of(k), k.object(), enqueueOperators(r.delay, componentOf, componentEvents{k}.affected)))
		}
	}
	return b.WithOptions(options(o)).Complete(r)
}

func setupLabels(mgr ctrl.Manager, o Options, c caches) error {
	r := &labelReconciler{readers: c.readers(), client: mgr.GetClient()}
	b := ctrl.NewControllerManagedBy(mgr).Named("adoption").
		Watches(&operatorsv1alpha1.ClusterServiceVersion{}, enqueueDelayed(self), builder.WithPredicates(labelsOrDefinitionsChanged())).
		Watches(&operatorsv1alpha1.Subscription{}, enqueueDelayed(r.installedVersion), builder.WithPredicates(installedVersionChanged())).
		WatchesRawSource(c.source(crdKind(), r.providingVersions, componentLabelRemoved()))
	for _, k := range kinds() {
		if k.ownable && !k.named {
			b = b.WatchesRawSource(c.source(k, r.owningVersions, labelsOrOwnersChanged()))
		}
	}
	return b.WithOptions(options(o)).Complete(r)
}

func setupPlans(mgr ctrl.Manager, o Options) error {
	r := &planReconciler{client: mgr.GetClient(), cache: mgr.GetCache(), removed: map[types.NamespacedName]map[types.UID]bool{}}
	return ctrl.NewControllerManagedBy(mgr).Named("superseded-plans").
		For(&operatorsv1alpha1.Subscription{}, builder.WithPredicates(installPlanChanged())).
		Watches(&operatorsv1alpha1.InstallPlan{}, handler.EnqueueRequestsFromMapFunc(r.labellingSubscriptions), builder.WithPredicates(phaseOrLabelsChanged())).
		WithOptions(options(o)).
		Complete(r)
}

func options(o Options) controller.Options {
	return controller.Options{
		MaxConcurrentReconciles: o.Workers,
		EnableWarmup:            new(true),
		ReconciliationTimeout:   reconcileTimeout,
		RateLimiter:             apply.RateLimiter(),
	}
}

// labelsOrDefinitionsChanged admits creations and updates after which a version or its objects may need
// other component labels. Nothing else of a version decides on them, and a copy only loses labels.
func labelsOrDefinitionsChanged() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool {
			return !isCopied(e.Object) || len(componentKeys(e.Object.GetLabels())) > 0
		},
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, after := e.ObjectOld, e.ObjectNew
			return before.GetUID() != after.GetUID() || isCopied(before) != isCopied(after) ||
				!slices.Equal(componentKeys(before.GetLabels()), componentKeys(after.GetLabels())) ||
				!slices.Equal(definitionsOf(before), definitionsOf(after))
		},
	}
}

// labelsOrOwnersChanged admits updates after which an object may need a label.
func labelsOrOwnersChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return !equality.Semantic.DeepEqual(e.ObjectOld.GetLabels(), e.ObjectNew.GetLabels()) ||
			!equality.Semantic.DeepEqual(e.ObjectOld.GetOwnerReferences(), e.ObjectNew.GetOwnerReferences())
	}}
}

// componentLabelRemoved admits updates of CustomResourceDefinitions that remove a component label.
func componentLabelRemoved() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return len(missingKeys(e.ObjectNew.GetLabels(), componentKeys(e.ObjectOld.GetLabels()))) > 0
	}}
}

// caches holds the caches of the kinds: that of all controllers, that of this package, and that of
// CustomResourceDefinitions. Kinds without a cache are read from the API server.
type caches struct {
	shared, managed, definitions cache.Cache
	live                         client.Reader
}

func (c caches) readers() readers {
	return readers{shared: c.shared, managed: c.managed, definitions: c.definitions, live: c.live}
}

// of returns the cache of a kind.
func (c caches) of(k kind) cache.Cache {
	switch {
	case k.managed:
		return c.managed
	case k.definitions:
		return c.definitions
	default:
		return c.shared
	}
}

// source returns the event source of a kind.
func (c caches) source(k kind, where handler.MapFunc, when predicate.Predicate) source.Source {
	return source.Kind(c.of(k), k.object(), enqueueDelayed(where), when)
}

// managedCache is a cache that the manager starts together with its own caches, before their
// readers.
type managedCache struct{ cache.Cache }

// GetCache makes the manager recognize the cache and wait for its sync.
func (c managedCache) GetCache() cache.Cache { return c.Cache }

// newManagedCache returns a cache of objects that were created for operators. A cluster has many
// ConfigMaps and Services, of which few are components. It is separate from the manager's cache,
// because other controllers need objects that its selector excludes.
func newManagedCache(mgr ctrl.Manager) (cache.Cache, error) {
	c, err := cache.New(mgr.GetConfig(), cache.Options{
		HTTPClient:           mgr.GetHTTPClient(),
		Scheme:               mgr.GetScheme(),
		Mapper:               mgr.GetRESTMapper(),
		DefaultLabelSelector: labels.SelectorFromSet(labels.Set{api.LabelManaged: "true"}),
		NewInformer:          informer.New,
		DefaultTransform:     informer.TransformAfter(stripMetadata),
	})
	if err != nil {
		return nil, fmt.Errorf("making the cache of components: %w", err)
	}
	if err := mgr.Add(managedCache{c}); err != nil {
		return nil, fmt.Errorf("adding the cache of components: %w", err)
	}
	return c, nil
}

// stripMetadata drops the metadata of an object that is not needed to identify its Operator.
func stripMetadata(o any) (any, error) {
	if object, is := o.(*metav1.PartialObjectMetadata); is {
		object.ManagedFields, object.Annotations, object.Finalizers = nil, nil, nil
	}
	return o, nil
}
