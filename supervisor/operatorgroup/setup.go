package operatorgroup

import (
	"context"
	"fmt"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// reconcileTimeout bounds one reconcile, so that a hanging API call cannot
// hold a worker for ever.
const reconcileTimeout = time.Minute

// Options configures the controllers of this package. The zero value works.
type Options struct {
	// Clock gives the times written to status; the system clock when nil.
	Clock clock.PassiveClock
	// Workers is the number of objects of a kind reconciled at a time; 2 when
	// zero.
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

// Setup adds the controllers to a manager whose scheme knows
// operators.coreos.com/v1. They work on the leader alone and fill their caches
// on standbys too.
func Setup(mgr ctrl.Manager, o Options) error {
	o = o.withDefaults()
	if err := setupGroups(mgr, o); err != nil {
		return fmt.Errorf("setting up the OperatorGroup controller: %w", err)
	}
	if err := setupNamespaces(mgr, o); err != nil {
		return fmt.Errorf("setting up the OperatorGroup label controller: %w", err)
	}
	return nil
}

func setupGroups(mgr ctrl.Manager, o Options) error {
	r := &groupReconciler{client: mgr.GetClient(), clock: o.Clock, events: mgr.GetEventRecorder("chandlery-operatorgroup")}
	m := mapper{reader: mgr.GetClient()}
	return ctrl.NewControllerManagedBy(mgr).
		Named("operatorgroup").
		For(&operatorsv1.OperatorGroup{}).
		Watches(&operatorsv1.OperatorGroup{}, handler.EnqueueRequestsFromMapFunc(m.siblings)).
		WatchesMetadata(namespaceMetadata(), handler.EnqueueRequestsFromMapFunc(m.selecting)).
		WithOptions(options(o)).
		Complete(r)
}

func setupNamespaces(mgr ctrl.Manager, o Options) error {
	m := mapper{reader: mgr.GetClient()}
	return ctrl.NewControllerManagedBy(mgr).
		Named("operatorgroup-labels").
		For(namespaceMetadata(), builder.OnlyMetadata).
		Watches(&operatorsv1.OperatorGroup{}, handler.EnqueueRequestsFromMapFunc(m.labelled)).
		WithOptions(options(o)).
		Complete(&namespaceReconciler{client: mgr.GetClient()})
}

func options(o Options) controller.Options {
	return controller.Options{
		MaxConcurrentReconciles: o.Workers,
		EnableWarmup:            new(true),
		ReconciliationTimeout:   reconcileTimeout,
	}
}

// mapper says which objects an event concerns. A failing read of the cache
// concerns none; it only fails while the cache is being stopped.
type mapper struct {
	reader client.Reader
}

// siblings maps a group to all groups of its namespace, for each says how many
// there are.
func (m mapper) siblings(ctx context.Context, obj client.Object) []reconcile.Request {
	return m.groups(ctx, func(*operatorsv1.OperatorGroup) bool { return true }, client.InNamespace(obj.GetNamespace()))
}

// selecting maps a namespace to the groups that choose by selector.
func (m mapper) selecting(ctx context.Context, _ client.Object) []reconcile.Request {
	return m.groups(ctx, func(g *operatorsv1.OperatorGroup) bool { return !isEmptySelector(g.Spec.Selector) })
}

func (m mapper) groups(ctx context.Context, keep func(*operatorsv1.OperatorGroup) bool, opts ...client.ListOption) []reconcile.Request {
	var list operatorsv1.OperatorGroupList
	if err := m.reader.List(ctx, &list, opts...); err != nil {
		return nil
	}
	var requests []reconcile.Request
	for i := range list.Items {
		if keep(&list.Items[i]) {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
		}
	}
	return requests
}

// labelled maps a group, present or just gone, to the namespaces that it
// targets and to those that still carry its label.
func (m mapper) labelled(ctx context.Context, obj client.Object) []reconcile.Request {
	group, ok := obj.(*operatorsv1.OperatorGroup)
	if !ok {
		return nil
	}
	var requests []reconcile.Request
	for _, name := range group.Status.Namespaces {
		if name != "" {
			requests = append(requests, request(name))
		}
	}
	list := namespaceMetadataList()
	if err := m.reader.List(ctx, list, client.HasLabels{labelKey(group)}); err != nil {
		return requests
	}
	for i := range list.Items {
		requests = append(requests, request(list.Items[i].Name))
	}
	return requests
}

func request(name string) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Name: name}}
}
