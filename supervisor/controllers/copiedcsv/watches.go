package copiedcsv

import (
	"context"
	"slices"
	"strings"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/api/providedapis"
)

// mapper maps events to the affected versions. It returns none if the cache cannot be read, which
// only happens while it stops.
//
// A version that serves only its own namespace has no copies. Events affect it only while it has
// copies from before.
type mapper struct {
	reader client.Reader
	// copies reads the cache of copies.
	copies client.Reader
}

// queue is the queue for requests.
type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// versionEvents enqueues a version that is copied. On its creation and deletion, it also enqueues the
// versions of the same name that are copied to its namespace, because it blocks their copies.
func (m mapper) versionEvents() handler.EventHandler {
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) {
			m.add(ctx, q, e.Object)
			m.addBlocked(ctx, q, e.Object)
		},
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			m.add(ctx, q, e.ObjectOld)
			m.add(ctx, q, e.ObjectNew)
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) {
			m.add(ctx, q, e.Object)
			m.addBlocked(ctx, q, e.Object)
		},
	}
}

// copyEvents enqueues the version that a copy was made from. On the creation and deletion of the copy,
// it also enqueues the versions of the same name that are copied to its namespace.
func (m mapper) copyEvents() handler.TypedEventHandler[*metav1.PartialObjectMetadata, reconcile.Request] {
	add := func(q queue, copied *metav1.PartialObjectMetadata) {
		if origin, ok := originOf(copied); ok {
			q.Add(reconcile.Request{NamespacedName: origin})
		}
	}
	return handler.TypedFuncs[*metav1.PartialObjectMetadata, reconcile.Request]{
		CreateFunc: func(ctx context.Context, e event.TypedCreateEvent[*metav1.PartialObjectMetadata], q queue) {
			add(q, e.Object)
			m.addBlocked(ctx, q, e.Object)
		},
		UpdateFunc: func(_ context.Context, e event.TypedUpdateEvent[*metav1.PartialObjectMetadata], q queue) {
			add(q, e.ObjectOld)
			add(q, e.ObjectNew)
		},
		DeleteFunc: func(ctx context.Context, e event.TypedDeleteEvent[*metav1.PartialObjectMetadata], q queue) {
			add(q, e.Object)
			m.addBlocked(ctx, q, e.Object)
		},
	}
}

// add enqueues a version if it is copied or has copies.
func (m mapper) add(ctx context.Context, q queue, o client.Object) {
	csv, is := o.(*operatorsv1alpha1.ClusterServiceVersion)
	if is && !isCopied(csv) && (servesOthers(csv) || m.hasCopies(ctx, client.ObjectKeyFromObject(csv))) {
		q.Add(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(csv)})
	}
}

// addBlocked enqueues the versions with an object's name that are copied to its namespace.
func (m mapper) addBlocked(ctx context.Context, q queue, o client.Object) {
	for _, request := range m.copiedVersions(ctx, func(csv *operatorsv1alpha1.ClusterServiceVersion) bool {
		return csv.Name == o.GetName() && csv.Namespace != o.GetNamespace() && targets(csv, o.GetNamespace())
	}) {
		q.Add(request)
	}
}

// hasCopies reports whether a version has copies.
func (m mapper) hasCopies(ctx context.Context, key types.NamespacedName) bool {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(operatorsv1alpha1.SchemeGroupVersion.WithKind(operatorsv1alpha1.ClusterServiceVersionKind + "List"))
	if err := m.copies.List(ctx, list, client.MatchingFields{indexName: key.Name}, readOnly); err != nil {
		return false
	}
	return slices.ContainsFunc(list.Items, func(copied metav1.PartialObjectMetadata) bool {
		return copied.Labels[api.LabelCopiedFrom] == key.Namespace
	})
}

// servesOthers reports whether a version serves other namespaces than its own, according to its
// annotation.
func servesOthers(csv *operatorsv1alpha1.ClusterServiceVersion) bool {
	namespaces, found := csv.Annotations[operatorsv1.OperatorGroupTargetsAnnotationKey]
	return found && namespaces != csv.Namespace
}

// targets reports whether a version serves a namespace, according to its annotation.
func targets(csv *operatorsv1alpha1.ClusterServiceVersion, namespace string) bool {
	return servesAll(csv) || slices.Contains(strings.Split(csv.Annotations[operatorsv1.OperatorGroupTargetsAnnotationKey], ","), namespace)
}

// forOperatorGroup maps an OperatorGroup to the copied versions of its namespace, and to those of other
// namespaces that provide an API which it has claimed.
func (m mapper) forOperatorGroup(ctx context.Context, obj client.Object) []reconcile.Request {
	group, ok := obj.(*operatorsv1.OperatorGroup)
	if !ok {
		return nil
	}
	claimed := providedapis.Claimed(group)
	return m.copiedVersions(ctx, func(csv *operatorsv1alpha1.ClusterServiceVersion) bool {
		return csv.Namespace == group.Namespace || len(claimed) > 0 && len(providedapis.Of(csv).Both(claimed)) > 0
	})
}

// forNamespace maps a namespace to the versions that serve it.
func (m mapper) forNamespace(ctx context.Context, namespace client.Object) []reconcile.Request {
	return m.copiedVersions(ctx, func(csv *operatorsv1alpha1.ClusterServiceVersion) bool { return targets(csv, namespace.GetName()) })
}

// forOLMConfig maps the OLMConfig to the versions that serve all namespaces.
func (m mapper) forOLMConfig(ctx context.Context, config client.Object) []reconcile.Request {
	if config.GetName() != configName {
		return nil
	}
	return m.copiedVersions(ctx, servesAll)
}

// owner maps a role or a binding to the version in its labels, if that version is copied. It maps a
// copied role or binding to its version in any case.
func (m mapper) owner(ctx context.Context, obj client.Object) []reconcile.Request {
	owner, ok := ownerOf(obj)
	if !ok {
		return nil
	}
	csv := &operatorsv1alpha1.ClusterServiceVersion{}
	if !isCopied(obj) && (m.reader.Get(ctx, owner, csv, readOnly) != nil || !servesOthers(csv)) {
		return nil
	}
	return []reconcile.Request{{NamespacedName: owner}}
}

// copiedVersions returns requests for the copied versions that keep accepts.
func (m mapper) copiedVersions(ctx context.Context, keep func(*operatorsv1alpha1.ClusterServiceVersion) bool) []reconcile.Request {
	var list operatorsv1alpha1.ClusterServiceVersionList
	if err := m.reader.List(ctx, &list, client.MatchingFields{indexServesOthers: "true"}, readOnly); err != nil {
		return nil
	}
	var requests []reconcile.Request
	for i := range list.Items {
		if csv := &list.Items[i]; keep(csv) {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(csv)})
		}
	}
	return requests
}

// existenceChanged admits the creation, the start of the deletion and the deletion of a namespace. Other
// updates do not affect copies.
func existenceChanged() predicate.Predicate {
	return predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool { return isDeleting(e.ObjectOld) != isDeleting(e.ObjectNew) },
	}
}

// configDelay is the pause between an event and the update of the OLMConfig's condition. Copies are
// created and deleted in hundreds.
const configDelay = 2 * time.Second

// enqueueConfig enqueues the update of the OLMConfig's condition after configDelay.
func enqueueConfig[T client.Object]() handler.TypedEventHandler[T, reconcile.Request] {
	add := func(q queue) { q.AddAfter(configRequest(), configDelay) }
	return handler.TypedFuncs[T, reconcile.Request]{
		CreateFunc: func(_ context.Context, _ event.TypedCreateEvent[T], q queue) { add(q) },
		DeleteFunc: func(_ context.Context, _ event.TypedDeleteEvent[T], q queue) { add(q) },
		UpdateFunc: func(_ context.Context, _ event.TypedUpdateEvent[T], q queue) { add(q) },
	}
}
