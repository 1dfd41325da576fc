package operator

import (
	"context"
	"maps"
	"slices"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// queue is what requests are added to.
type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// componentEvents are the events of a kind whose objects may be components of Operators.
type componentEvents struct{ kind kind }

// handler enqueues the Operators whose status an event may change, a moment later: an installation
// creates and changes dozens of components, which are one pass then.
func (c componentEvents) handler() handler.EventHandler {
	add := func(q queue, names []string) {
		for _, name := range names {
			q.AddAfter(reconcile.Request{NamespacedName: types.NamespacedName{Name: name}}, gatheringTime)
		}
	}
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) { add(q, componentOf(e.Object)) },
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q queue) { add(q, componentOf(e.Object)) },
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) { add(q, c.affected(e.ObjectOld, e.ObjectNew)) },
	}
}

// affected returns the Operators whose status changes when a component does. A definition may be a
// component of thousands, and a label that another one adds to it concerns that one alone.
func (c componentEvents) affected(before, after client.Object) []string {
	was, is := componentOf(before), componentOf(after)
	if before.GetUID() != after.GetUID() || c.shows(before, after) {
		all := slices.Concat(was, is)
		slices.Sort(all)
		return slices.Compact(all)
	}
	changed := slices.DeleteFunc(slices.Clone(is), func(name string) bool { return slices.Contains(was, name) })
	return append(changed, slices.DeleteFunc(was, func(name string) bool { return slices.Contains(is, name) })...)
}

// shows reports whether the status of an Operator shows the difference between two versions of a
// component. Conditions of an object of which only the metadata is known may have changed.
func (c componentEvents) shows(before, after client.Object) bool {
	switch {
	case !c.kind.conditions:
		return false
	case c.kind.whole == nil:
		return before.GetResourceVersion() != after.GetResourceVersion()
	default:
		return !equality.Semantic.DeepEqual(conditionsOf(before), conditionsOf(after))
	}
}

// componentOf returns the names of the Operators that an object is a component of.
func componentOf(o client.Object) []string {
	if isCopied(o) {
		return nil
	}
	return operators(o.GetLabels())
}

// gathered enqueues what a function maps objects to, a moment later: an installation creates a dozen
// objects of a version, which are one pass then, and bear their labels by that time.
func gathered(where handler.MapFunc) handler.EventHandler {
	add := func(ctx context.Context, q queue, o client.Object) {
		for _, request := range where(ctx, o) {
			q.AddAfter(request, gatheringTime)
		}
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) { add(ctx, q, e.Object) },
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			add(ctx, q, e.ObjectOld)
			add(ctx, q, e.ObjectNew)
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) { add(ctx, q, e.Object) },
	}
}

// itself maps an object to its own name.
func itself(_ context.Context, o client.Object) []reconcile.Request {
	return []reconcile.Request{{NamespacedName: client.ObjectKeyFromObject(o)}}
}

// installsAnother lets pass that a Subscription comes to have another version or package installed.
func installsAnother() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, is := e.ObjectOld.(*operatorsv1alpha1.Subscription)
		after, both := e.ObjectNew.(*operatorsv1alpha1.Subscription)
		return !is || !both || before.UID != after.UID || before.Generation != after.Generation ||
			before.Status.InstalledCSV != after.Status.InstalledCSV
	}}
}

// refersToAnother lets pass that a Subscription comes to refer to another plan or package.
func refersToAnother() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, is := e.ObjectOld.(*operatorsv1alpha1.Subscription)
		after, both := e.ObjectNew.(*operatorsv1alpha1.Subscription)
		return !is || !both || before.UID != after.UID || before.Generation != after.Generation ||
			!equality.Semantic.DeepEqual(before.Status.InstallPlanRef, after.Status.InstallPlanRef)
	}}
}

// endsOrLabelled lets pass that a plan comes to another phase or gets other labels.
func endsOrLabelled() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, is := e.ObjectOld.(*operatorsv1alpha1.InstallPlan)
		after, both := e.ObjectNew.(*operatorsv1alpha1.InstallPlan)
		return !is || !both || before.UID != after.UID || before.Status.Phase != after.Status.Phase || !maps.Equal(before.Labels, after.Labels)
	}}
}
