package subscription

import (
	"context"
	"fmt"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/chandlery/chandlery/supervisor/apply"
	"github.com/chandlery/chandlery/supervisor/bundleimage"
	"github.com/chandlery/chandlery/supervisor/catalogs"
	"github.com/chandlery/chandlery/supervisor/informer"
	"github.com/chandlery/chandlery/supervisor/plansteps"
	"github.com/chandlery/chandlery/supervisor/rbac/grant"
)

// Options are what the controller needs besides the manager.
type Options struct {
	// Catalogs provides the content of catalogs.
	Catalogs *catalogs.Store
	// Images pulls and caches bundle images.
	Images *bundleimage.Cache
	// Grants gives the supervisor temporary permissions to read custom resources. Without one, an
	// operator does not return to a version with smaller definitions if the supervisor may not list
	// its objects.
	Grants *grant.Granter
	// BundleKinds are the kinds that plans may contain in addition to OLM's.
	BundleKinds plansteps.Kinds
	// GlobalNamespace is the namespace whose catalogs serve every namespace.
	GlobalNamespace string
	// Clock is the source of time; the real clock when nil.
	Clock clock.PassiveClock
	// Concurrency is the number of namespaces that are reconciled at the same time.
	Concurrency int
}

// reconcileTimeout bounds one reconcile, so that a difficult resolution or a hanging call cannot
// block a worker.
const reconcileTimeout = 2 * time.Minute

// Setup adds the controller to a manager. The name of a request is a namespace.
func Setup(mgr ctrl.Manager, o Options) error {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	r, err := newReconciler(mgr, o)
	if err != nil {
		return err
	}
	byNamespace := handler.EnqueueRequestsFromMapFunc(inNamespace)
	byCatalog := handler.EnqueueRequestsFromMapFunc(servedNamespaces(mgr.GetClient(), o.GlobalNamespace))
	err = ctrl.NewControllerManagedBy(mgr).
		Named("subscription").
		Watches(&operatorsv1alpha1.Subscription{}, byNamespace).
		WatchesRawSource(source.Channel(o.Images.Listen(), byNamespace)).
		Watches(&operatorsv1alpha1.ClusterServiceVersion{}, byNamespace, builder.WithPredicates(informer.IgnoreCauses())).
		Watches(&operatorsv1alpha1.InstallPlan{}, byNamespace, builder.WithPredicates(tracking(r.backfill.tracker, o.Clock))).
		Watches(&operatorsv1.OperatorGroup{}, byNamespace).
		Watches(catalogs.NewObject(), byCatalog).
		WatchesRawSource(source.Channel(o.Catalogs.Listen(), byCatalog)).
		WatchesRawSource(source.Func(r.backfill.enqueue)).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: o.Concurrency, EnableWarmup: new(true), ReconciliationTimeout: reconcileTimeout, UsePriorityQueue: new(true),
			RateLimiter: apply.RateLimiter(),
		}).
		Complete(r)
	if err != nil {
		return fmt.Errorf("setting up the Subscription controller: %w", err)
	}
	return nil
}

// newReconciler returns the controller, and adds the look-up of past events of plans to a manager.
func newReconciler(mgr ctrl.Manager, o Options) (*reconciler, error) {
	watcher, err := client.NewWithWatch(mgr.GetConfig(), client.Options{Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(), HTTPClient: mgr.GetHTTPClient()})
	if err != nil {
		return nil, fmt.Errorf("setting up the Subscription controller: creating a client that watches: %w", err)
	}
	c, live, emitter := mgr.GetClient(), mgr.GetAPIReader(), mgr.GetEventRecorder("chandlery-subscription")
	stages := &tracker{}
	content := &contentReader{catalogs: o.Catalogs, images: o.Images, kinds: o.BundleKinds}
	owners := &ownerWriter{client: c}
	r := &reconciler{
		backfill: &backfill{
			reader: c, watcher: watcher, tracker: stages, synced: mgr.GetCache().WaitForCacheSync, now: o.Clock.Now, done: make(chan struct{}),
		},
		observer:  &observer{client: c, cache: mgr.GetCache(), catalogs: o.Catalogs, tracker: stages, global: o.GlobalNamespace},
		uninstall: &uninstaller{client: c, live: live, events: emitter, clock: o.Clock},
		content:   content,
		rollback: &rollbackWriter{
			client: c, checker: &rollbackChecker{client: c, live: live, content: content, grants: o.Grants},
			backOff: newCheckBackOff(), events: emitter, clock: o.Clock,
		},
		plans:    &planWriter{client: c, live: live, owners: owners, content: content, tracker: stages, clock: o.Clock},
		owners:   owners,
		recorder: &recorder{client: c, live: live, tracker: stages, events: emitter, clock: o.Clock},
		series:   &seriesRecorder{},
		clock:    o.Clock,
	}
	if err := mgr.Add(r.backfill); err != nil {
		return nil, fmt.Errorf("setting up the Subscription controller: %w", err)
	}
	return r, nil
}

// inNamespace returns a request for the namespace of an object.
func inNamespace(_ context.Context, object client.Object) []reconcile.Request {
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: object.GetNamespace()}}}
}

// servedNamespaces returns a function that returns a request for every namespace that a catalog
// serves: its own or, for a catalog in the global namespace, all with Subscriptions.
func servedNamespaces(reader client.Reader, global string) handler.MapFunc {
	return func(ctx context.Context, object client.Object) []reconcile.Request {
		if object.GetNamespace() != global {
			return inNamespace(ctx, object)
		}
		list := &operatorsv1alpha1.SubscriptionList{}
		if err := reader.List(ctx, list); err != nil {
			log.FromContext(ctx).Error(err, "Listing the Subscriptions that a catalog serves", "catalogSource", client.ObjectKeyFromObject(object).String())
			return nil
		}
		seen := map[string]bool{}
		var requests []reconcile.Request
		for i := range list.Items {
			if namespace := list.Items[i].Namespace; !seen[namespace] {
				seen[namespace] = true
				requests = append(requests, inNamespace(ctx, &list.Items[i])...)
			}
		}
		return requests
	}
}

// tracking returns a predicate that accepts every event and records it. The tracker has an event
// before the event causes a reconcile.
func tracking(stages *tracker, passive clock.PassiveClock) predicate.Predicate {
	record := func(object client.Object) bool {
		if p, ok := object.(*operatorsv1alpha1.InstallPlan); ok {
			stages.add(p, passive.Now())
		}
		return true
	}
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return record(e.Object) },
		UpdateFunc: func(e event.UpdateEvent) bool { return record(e.ObjectNew) },
		DeleteFunc: func(e event.DeleteEvent) bool {
			if p, ok := e.Object.(*operatorsv1alpha1.InstallPlan); ok {
				stages.markDeleted(p, passive.Now())
			}
			return true
		},
	}
}
