package installplan

import (
	"context"
	"fmt"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Options are what the controller needs besides the manager.
type Options struct {
	// Bundles reads manifests that plans only refer to.
	Bundles bundleReader
	// Clock tells the time; the real one when nil.
	Clock clock.PassiveClock
	// RetryTimeout is how long a step may fail with an error that does not look
	// passing before the plan is given up.
	RetryTimeout time.Duration
	// Concurrency is the number of plans that are worked on at once.
	Concurrency int
}

// Setup adds the controller to a manager.
func Setup(mgr ctrl.Manager, o Options) error {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	r := &Reconciler{
		client:       mgr.GetClient(),
		bundles:      o.Bundles,
		recorder:     mgr.GetEventRecorder("chandlery-installplan"),
		clock:        o.Clock,
		retryTimeout: o.RetryTimeout,
	}
	err := ctrl.NewControllerManagedBy(mgr).
		Named("installplan").
		For(&operatorsv1alpha1.InstallPlan{}).
		Watches(&operatorsv1.OperatorGroup{}, handler.EnqueueRequestsFromMapFunc(r.plansBesideGroup)).
		WithOptions(controller.Options{MaxConcurrentReconciles: o.Concurrency, EnableWarmup: new(true)}).
		Complete(r)
	if err != nil {
		return fmt.Errorf("setting up the InstallPlan controller: %w", err)
	}
	return nil
}

// plansBesideGroup gives the plans that may have waited for a change among the
// OperatorGroups of their namespace.
func (r *Reconciler) plansBesideGroup(ctx context.Context, group client.Object) []reconcile.Request {
	plans := &operatorsv1alpha1.InstallPlanList{}
	if err := r.client.List(ctx, plans, client.InNamespace(group.GetNamespace())); err != nil {
		log.FromContext(ctx).Error(err, "Listing plans beside an OperatorGroup", "namespace", group.GetNamespace())
		return nil
	}
	var requests []reconcile.Request
	for i := range plans.Items {
		if plans.Items[i].Status.Phase == operatorsv1alpha1.InstallPlanPhaseInstalling {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&plans.Items[i])})
		}
	}
	return requests
}
