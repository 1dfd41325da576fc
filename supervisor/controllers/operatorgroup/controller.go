package operatorgroup

import (
	"context"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/chandlery/chandlery/supervisor/apply"
	"github.com/chandlery/chandlery/supervisor/informer/groupindex"
)

// reconciler writes the status of OperatorGroups.
type reconciler struct {
	client client.Client
	clock  clock.PassiveClock
	events events.EventRecorder
}

// Reconcile updates one group's status. It retries after a write conflict without an error, because
// the cache will receive the newer object.
func (r *reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	var group operatorsv1.OperatorGroup
	if err := r.client.Get(ctx, req.NamespacedName, &group); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !group.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil
	}
	o, err := r.observe(ctx, &group)
	if err != nil {
		return ctrl.Result{}, err
	}
	want := status(o, r.clock.Now())
	if equality.Semantic.DeepEqual(want, group.Status) {
		return ctrl.Result{}, nil
	}
	if err := writeStatus(ctx, r.client, &group, want); err != nil {
		return apply.RequeueConflict(err)
	}
	logf.FromContext(ctx).Info("Updated OperatorGroup status", "namespaces", want.Namespaces)
	emitEvents(r.events, &group, want)
	return ctrl.Result{}, nil
}

// namespaceReconciler writes group labels on namespaces.
type namespaceReconciler struct {
	client client.Client
}

// Reconcile updates the group labels of one namespace.
func (r *namespaceReconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	ns := namespaceMetadata()
	if err := r.client.Get(ctx, req.NamespacedName, ns); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	groups, err := groupindex.ForNamespace(ctx, r.client, ns.Name)
	if err != nil {
		return ctrl.Result{}, err //nolint:wrapcheck // says what was listed
	}
	changes := labelChanges(namespace{Name: ns.Name, Labels: ns.Labels}, groups)
	if len(changes) == 0 {
		return ctrl.Result{}, nil
	}
	if err := writeLabels(ctx, r.client, ns.Name, changes); err != nil {
		return apply.RequeueConflict(client.IgnoreNotFound(err))
	}
	return ctrl.Result{}, nil
}
