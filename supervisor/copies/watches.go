package copies

import (
	"context"
	"slices"
	"strings"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/chandlery/chandlery/supervisor/providedapis"
)

// mapper says which versions an event concerns. A failing read of the cache concerns
// none; it only fails while the cache is being stopped.
type mapper struct {
	reader client.Reader
}

// version maps a version, or a copy, to the version that it is or was made from, and to
// all others of its name, for which it may be in the way.
func (m mapper) version(ctx context.Context, obj client.Object) []reconcile.Request {
	origin, ok := originOf(obj)
	if !ok {
		origin = client.ObjectKeyFromObject(obj)
	}
	requests := m.selected(ctx, func(csv *operatorsv1alpha1.ClusterServiceVersion) bool {
		return client.ObjectKeyFromObject(csv) != origin
	}, client.MatchingFields{indexName: obj.GetName()})
	return append(requests, reconcile.Request{NamespacedName: origin})
}

// copied does what version does, for what is watched as metadata.
func (m mapper) copied(ctx context.Context, meta *metav1.PartialObjectMetadata) []reconcile.Request {
	return m.version(ctx, meta)
}

// grouped maps an OperatorGroup to all versions of its namespace, and to those of other
// namespaces that provide an API which it has claimed.
func (m mapper) grouped(ctx context.Context, obj client.Object) []reconcile.Request {
	group, ok := obj.(*operatorsv1.OperatorGroup)
	if !ok {
		return nil
	}
	claimed := providedapis.Claimed(group)
	return m.selected(ctx, func(csv *operatorsv1alpha1.ClusterServiceVersion) bool {
		return csv.Namespace == group.Namespace || len(claimed) > 0 && len(providedapis.Of(csv).Both(claimed)) > 0
	})
}

// serving maps a namespace to the versions that serve it.
func (m mapper) serving(ctx context.Context, namespace client.Object) []reconcile.Request {
	return m.selected(ctx, func(csv *operatorsv1alpha1.ClusterServiceVersion) bool {
		targets := strings.Split(csv.Annotations[operatorsv1.OperatorGroupTargetsAnnotationKey], ",")
		return servesAll(csv) || slices.Contains(targets, namespace.GetName())
	})
}

// global maps the OLMConfig to the versions that serve all namespaces.
func (m mapper) global(ctx context.Context, config client.Object) []reconcile.Request {
	if config.GetName() != configName {
		return nil
	}
	return m.selected(ctx, servesAll)
}

// owner maps a role or a binding to the version that its labels name.
func (m mapper) owner(_ context.Context, right client.Object) []reconcile.Request {
	owner, ok := ownerOf(right)
	if !ok {
		return nil
	}
	return []reconcile.Request{{NamespacedName: owner}}
}

func (m mapper) selected(ctx context.Context, keep func(*operatorsv1alpha1.ClusterServiceVersion) bool,
	opts ...client.ListOption,
) []reconcile.Request {
	var list operatorsv1alpha1.ClusterServiceVersionList
	if err := m.reader.List(ctx, &list, append(opts, readOnly)...); err != nil {
		return nil
	}
	var requests []reconcile.Request
	for i := range list.Items {
		if csv := &list.Items[i]; !isCopied(csv) && keep(csv) {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(csv)})
		}
	}
	return requests
}

// comings lets pass that a namespace comes, begins to go and is gone. What is written on
// it in between changes nothing for copies.
func comings() predicate.Predicate {
	return predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool { return gone(e.ObjectOld) != gone(e.ObjectNew) },
	}
}

// configDelay is how long after an event the copies are counted again. They come and go
// by the hundred.
const configDelay = 2 * time.Second

// recount lets the condition of the OLMConfig follow, a moment after the event.
func recount[T client.Object]() handler.TypedEventHandler[T, reconcile.Request] {
	type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]
	add := func(q queue) { q.AddAfter(configRequest(), configDelay) }
	return handler.TypedFuncs[T, reconcile.Request]{
		CreateFunc: func(_ context.Context, _ event.TypedCreateEvent[T], q queue) { add(q) },
		DeleteFunc: func(_ context.Context, _ event.TypedDeleteEvent[T], q queue) { add(q) },
		UpdateFunc: func(_ context.Context, _ event.TypedUpdateEvent[T], q queue) { add(q) },
	}
}
