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
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/chandlery/chandlery/supervisor/catalogs"
)

// Options are what the controller needs besides the manager.
type Options struct {
	// Catalogs gives the content of catalogs.
	Catalogs *catalogs.Store
	// GlobalNamespace is the namespace whose catalogs serve every namespace.
	GlobalNamespace string
	// Clock tells the time; the real one when nil.
	Clock clock.PassiveClock
	// Concurrency is the number of namespaces that are worked on at once.
	Concurrency int
}

// reconcileTimeout bounds one reconcile, so that a namespace that is hard to
// resolve, or a hanging call, cannot hold a worker for good.
const reconcileTimeout = 2 * time.Minute

// Setup adds the controller to a manager. Requests carry a namespace as their
// name.
func Setup(mgr ctrl.Manager, o Options) error {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	r := &Reconciler{
		client:   mgr.GetClient(),
		live:     mgr.GetAPIReader(),
		reader:   mgr.GetCache(),
		catalogs: o.Catalogs,
		recorder: mgr.GetEventRecorder("chandlery-subscription"),
		clock:    o.Clock,
		global:   o.GlobalNamespace,
	}
	byNamespace := handler.EnqueueRequestsFromMapFunc(inNamespace)
	byCatalog := handler.EnqueueRequestsFromMapFunc(r.besideCatalog)
	err := ctrl.NewControllerManagedBy(mgr).
		Named("subscription").
		Watches(&operatorsv1alpha1.Subscription{}, byNamespace).
		Watches(&operatorsv1alpha1.ClusterServiceVersion{}, byNamespace).
		Watches(&operatorsv1alpha1.InstallPlan{}, byNamespace).
		Watches(&operatorsv1.OperatorGroup{}, byNamespace).
		Watches(catalogs.NewObject(), byCatalog).
		WatchesRawSource(source.Channel(o.Catalogs.Listen(), byCatalog)).
		WithOptions(controller.Options{MaxConcurrentReconciles: o.Concurrency, EnableWarmup: new(true), ReconciliationTimeout: reconcileTimeout}).
		Complete(r)
	if err != nil {
		return fmt.Errorf("setting up the Subscription controller: %w", err)
	}
	return nil
}

// inNamespace asks for the namespace that an object is in.
func inNamespace(_ context.Context, object client.Object) []reconcile.Request {
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: object.GetNamespace()}}}
}

// besideCatalog asks for every namespace that a catalog serves: its own, and if
// that is the global one, all that have Subscriptions.
func (r *Reconciler) besideCatalog(ctx context.Context, object client.Object) []reconcile.Request {
	if object.GetNamespace() != r.global {
		return inNamespace(ctx, object)
	}
	list := &operatorsv1alpha1.SubscriptionList{}
	if err := r.client.List(ctx, list); err != nil {
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
