package farewell

import (
	"context"
	"fmt"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/informer"
	"github.com/chandlery/chandlery/supervisor/retry"
)

const (
	// reconcileTimeout bounds one reconciliation: pods do not wait longer.
	reconcileTimeout = 10 * time.Second
	// conflictDelay is the pause after a conflict with a newer definition.
	conflictDelay = 50 * time.Millisecond
)

// Options configures the controller. The zero value works.
type Options struct {
	// Clock measures how long pods have been terminating; the system clock if nil.
	Clock clock.PassiveClock
}

// endpoints is a cache of the EndpointSlices of operators. It is separate from the manager's cache, which has
// those of catalogs.
type endpoints struct{ cache.Cache }

// GetCache returns the cache, by which the manager recognizes it and waits for it.
func (e endpoints) GetCache() cache.Cache { return e.Cache }

// Setup adds the controller to a manager whose scheme knows operators.coreos.com/v1alpha1 and the kinds of
// Kubernetes. It runs on the leader only, and fills its caches on standbys too.
func Setup(mgr ctrl.Manager, o Options) error {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	c, err := cache.New(mgr.GetConfig(), cache.Options{
		HTTPClient: mgr.GetHTTPClient(),
		Scheme:     mgr.GetScheme(),
		Mapper:     mgr.GetRESTMapper(),
		// EndpointSlices have the labels of their Services.
		DefaultLabelSelector: labels.SelectorFromSet(labels.Set{
			api.LabelManaged: "true", api.LabelOwnerKind: operatorsv1alpha1.ClusterServiceVersionKind,
		}),
		NewInformer:      informer.New,
		DefaultTransform: informer.Transform,
	})
	if err != nil {
		return fmt.Errorf("making the cache of the endpoints of operators: %w", err)
	}
	if err := mgr.Add(endpoints{c}); err != nil {
		return fmt.Errorf("adding the cache of the endpoints of operators: %w", err)
	}
	r := &reconciler{client: mgr.GetClient(), live: mgr.GetAPIReader(), slices: c, clock: o.Clock, leaves: departures{}}
	err = ctrl.NewControllerManagedBy(mgr).
		Named("farewell").
		WatchesRawSource(source.Kind(c, &discoveryv1.EndpointSlice{},
			handler.TypedEnqueueRequestsFromMapFunc[*discoveryv1.EndpointSlice, reconcile.Request](ofService))).
		WithOptions(controller.Options{
			// The departures are not safe for concurrent use.
			MaxConcurrentReconciles: 1,
			EnableWarmup:            new(true),
			ReconciliationTimeout:   reconcileTimeout,
			RateLimiter:             retry.Limiter(),
		}).
		Complete(r)
	if err != nil {
		return fmt.Errorf("setting up the farewell controller: %w", err)
	}
	return nil
}

// ofService returns a request for the Service of an EndpointSlice.
func ofService(_ context.Context, e *discoveryv1.EndpointSlice) []reconcile.Request {
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: e.Namespace, Name: e.Labels[discoveryv1.LabelServiceName]}}}
}
