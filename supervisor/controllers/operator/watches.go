package operator

import (
	"context"
	"maps"
	"slices"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
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

// queue is the queue for requests.
type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// enqueueOperators enqueues the Operators whose status an event may change, each after its delay. of
// returns those of a created or deleted object, and affected those of an updated one. An installation
// changes dozens of components, which then need one reconciliation.
func enqueueOperators(delay func(name string) time.Duration, of func(client.Object) []string,
	affected func(before, after client.Object) []string,
) handler.EventHandler {
	add := func(q queue, names []string) {
		for _, name := range names {
			q.AddAfter(reconcile.Request{NamespacedName: types.NamespacedName{Name: name}}, delay(name))
		}
	}
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) { add(q, of(e.Object)) },
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q queue) { add(q, of(e.Object)) },
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) { add(q, affected(e.ObjectOld, e.ObjectNew)) },
	}
}

// nameOf returns the name of an Operator.
func nameOf(o client.Object) []string { return []string{o.GetName()} }

// changedOperator returns the name of an Operator if its status has changed or it is another object.
func changedOperator(before, after client.Object) []string {
	was, is := before.(*operatorsv1.Operator)
	now, both := after.(*operatorsv1.Operator)
	if is && both && was.UID == now.UID && equality.Semantic.DeepEqual(was.Status, now.Status) {
		return nil
	}
	return nameOf(after)
}

// componentEvents handles events of a kind whose objects may be components of Operators.
type componentEvents struct{ kind kind }

// affected returns the Operators whose status changes with a component. A CustomResourceDefinition
// may belong to thousands of Operators. An additional label on it only affects the new Operator.
func (c componentEvents) affected(before, after client.Object) []string {
	was, is := componentOf(before), componentOf(after)
	if before.GetUID() != after.GetUID() || c.affectsStatus(before, after) {
		all := slices.Concat(was, is)
		slices.Sort(all)
		return slices.Compact(all)
	}
	changed := slices.DeleteFunc(slices.Clone(is), func(name string) bool { return slices.Contains(was, name) })
	return append(changed, slices.DeleteFunc(was, func(name string) bool { return slices.Contains(is, name) })...)
}

// affectsStatus reports whether the difference between two versions of a component can change the status of
// an Operator. For a component that is cached as metadata, every update counts, because its
// conditions may have changed.
func (c componentEvents) affectsStatus(before, after client.Object) bool {
	switch {
	case !c.kind.conditions:
		return false
	case c.kind.typed == nil:
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

// enqueueDelayed enqueues the requests of where for created and updated objects, after batchDelay. An
// installation creates a dozen objects of a version, which then need one reconciliation. Labels of
// deleted objects, and of earlier owners, stay.
func enqueueDelayed(where handler.MapFunc) handler.EventHandler {
	add := func(ctx context.Context, q queue, o client.Object) {
		for _, request := range where(ctx, o) {
			q.AddAfter(request, batchDelay)
		}
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) { add(ctx, q, e.Object) },
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) { add(ctx, q, e.ObjectNew) },
	}
}

// self returns a request for the object.
func self(_ context.Context, o client.Object) []reconcile.Request {
	return []reconcile.Request{{NamespacedName: client.ObjectKeyFromObject(o)}}
}

// installedVersionChanged admits updates after which a Subscription has another installed version or
// another spec.
func installedVersionChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, is := e.ObjectOld.(*operatorsv1alpha1.Subscription)
		after, both := e.ObjectNew.(*operatorsv1alpha1.Subscription)
		return !is || !both || before.UID != after.UID || before.Generation != after.Generation ||
			before.Status.InstalledCSV != after.Status.InstalledCSV
	}}
}

// installPlanChanged admits updates after which a Subscription has another InstallPlan or another
// spec.
func installPlanChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, is := e.ObjectOld.(*operatorsv1alpha1.Subscription)
		after, both := e.ObjectNew.(*operatorsv1alpha1.Subscription)
		return !is || !both || before.UID != after.UID || before.Generation != after.Generation ||
			!equality.Semantic.DeepEqual(before.Status.InstallPlanRef, after.Status.InstallPlanRef)
	}}
}

// phaseOrLabelsChanged admits updates after which an InstallPlan has another phase or other labels.
func phaseOrLabelsChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, is := e.ObjectOld.(*operatorsv1alpha1.InstallPlan)
		after, both := e.ObjectNew.(*operatorsv1alpha1.InstallPlan)
		return !is || !both || before.UID != after.UID || before.Status.Phase != after.Status.Phase || !maps.Equal(before.Labels, after.Labels)
	}}
}
