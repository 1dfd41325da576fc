package operatorcondition

import (
	"context"
	"fmt"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	operatorsv2 "github.com/operator-framework/api/pkg/operators/v2"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/chandlery/chandlery/supervisor/retry"
)

// reconcileTimeout bounds one reconcile, so that a hanging API call cannot hold a worker
// for ever.
const reconcileTimeout = time.Minute

// Options configures the controller. The zero value works.
type Options struct {
	// Clock gives the times written to status; the system clock when nil.
	Clock clock.PassiveClock
	// Workers is the number of versions reconciled at a time; 2 when zero.
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

// Setup adds the controller to a manager whose scheme knows operators.coreos.com/v2 and
// v1alpha1 and the kinds of Kubernetes itself. It works on the leader alone and fills its
// caches on standbys too.
func Setup(mgr ctrl.Manager, o Options) error {
	o = o.withDefaults()
	r := &reconciler{client: mgr.GetClient(), clock: o.Clock, events: mgr.GetEventRecorder("chandlery-operatorcondition")}
	// What belongs together has one name.
	same := &handler.EnqueueRequestForObject{}
	// The status of a version has nothing that counts here.
	spec := builder.WithPredicates(predicate.GenerationChangedPredicate{})
	err := ctrl.NewControllerManagedBy(mgr).
		Named("operatorcondition").
		For(&operatorsv1alpha1.ClusterServiceVersion{}, spec).
		Watches(&operatorsv1alpha1.ClusterServiceVersion{}, handler.EnqueueRequestsFromMapFunc(predecessor), spec).
		Watches(&operatorsv2.OperatorCondition{}, same).
		Watches(&rbacv1.Role{}, same).
		Watches(&rbacv1.RoleBinding{}, same).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: o.Workers,
			EnableWarmup:            new(true),
			ReconciliationTimeout:   reconcileTimeout,
			RateLimiter:             retry.Limiter(),
		}).
		Complete(r)
	if err != nil {
		return fmt.Errorf("setting up the OperatorCondition controller: %w", err)
	}
	return nil
}

// predecessor returns the version that another one replaces.
func predecessor(_ context.Context, o client.Object) []reconcile.Request {
	csv, is := o.(*operatorsv1alpha1.ClusterServiceVersion)
	if !is || csv.Spec.Replaces == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: csv.Namespace, Name: csv.Spec.Replaces}}}
}
