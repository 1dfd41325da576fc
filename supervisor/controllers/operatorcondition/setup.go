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

	"github.com/chandlery/chandlery/supervisor/apply"
)

// reconcileTimeout limits one reconciliation, so that a hanging API call cannot block a worker.
const reconcileTimeout = time.Minute

// Options configures the controller. The zero value works.
type Options struct {
	// Clock provides the times in the status; the system clock if nil.
	Clock clock.PassiveClock
	// Workers is the number of versions reconciled concurrently; 2 if zero.
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

// Setup adds the controller to a manager. The manager's scheme must contain operators.coreos.com/v2
// and v1alpha1 and the built-in kinds. The controller runs on the leader only and fills its caches
// on standbys too.
func Setup(mgr ctrl.Manager, o Options) error {
	o = o.withDefaults()
	r := &reconciler{client: mgr.GetClient(), clock: o.Clock, events: mgr.GetEventRecorder("chandlery-operatorcondition")}
	// All objects of a version have the same name.
	same := &handler.EnqueueRequestForObject{}
	// The controller does not use the status of a version.
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
			RateLimiter:             apply.RateLimiter(),
		}).
		Complete(r)
	if err != nil {
		return fmt.Errorf("setting up the OperatorCondition controller: %w", err)
	}
	return nil
}

// predecessor returns a request for the version that another one replaces.
func predecessor(_ context.Context, o client.Object) []reconcile.Request {
	csv, is := o.(*operatorsv1alpha1.ClusterServiceVersion)
	if !is || csv.Spec.Replaces == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: csv.Namespace, Name: csv.Spec.Replaces}}}
}
