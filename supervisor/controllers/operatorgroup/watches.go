package operatorgroup

import (
	"context"
	"maps"
	"strings"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/api/providedapis"
	"github.com/chandlery/chandlery/supervisor/informer/groupindex"
)

// mapper maps events to the affected objects. It returns none if the cache cannot be read, which
// only happens while it stops.
type mapper struct {
	reader client.Reader
}

// withSelector maps a namespace to the groups with a selector.
func (m mapper) withSelector(ctx context.Context, _ client.Object) []reconcile.Request {
	return m.groups(ctx, func(*operatorsv1.OperatorGroup) bool { return true }, client.MatchingFields{indexSelecting: selecting})
}

func (m mapper) groups(ctx context.Context, keep func(*operatorsv1.OperatorGroup) bool, opts ...client.ListOption) []reconcile.Request {
	var list operatorsv1.OperatorGroupList
	if err := m.reader.List(ctx, &list, append(opts, readOnly)...); err != nil {
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

// targetNamespaces maps a group, existing or deleted, to the namespaces that it targets and to those with
// its label.
func (m mapper) targetNamespaces(ctx context.Context, obj client.Object) []reconcile.Request {
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
	if err := m.reader.List(ctx, list, client.MatchingFields{indexLabelled: labelKey(group)}, readOnly); err != nil {
		return requests
	}
	for i := range list.Items {
		requests = append(requests, request(list.Items[i].Name))
	}
	return requests
}

// inSameNamespace maps an object to the groups of its namespace. For a group, the condition
// MultipleOperatorGroup of these groups may change.
func (m mapper) inSameNamespace(ctx context.Context, obj client.Object) []reconcile.Request {
	return m.in(ctx, obj.GetNamespace())
}

func (m mapper) in(ctx context.Context, namespace string) []reconcile.Request {
	return m.groups(ctx, func(*operatorsv1.OperatorGroup) bool { return true }, client.InNamespace(namespace))
}

// withAccount maps a ServiceAccount to the groups that refer to it.
func (m mapper) withAccount(ctx context.Context, obj client.Object) []reconcile.Request {
	return m.groups(ctx, func(g *operatorsv1.OperatorGroup) bool { return g.Spec.ServiceAccountName == obj.GetName() },
		client.InNamespace(obj.GetNamespace()))
}

// competing maps a group to the groups of its namespace. If it has claims, it also maps to the
// groups that reach a common namespace, because they may lose or gain an API. The caller passes the
// old and the new state of the group.
func (m mapper) competing(ctx context.Context, obj client.Object) []reconcile.Request {
	group, ok := obj.(*operatorsv1.OperatorGroup)
	if !ok {
		return nil
	}
	requests := m.inSameNamespace(ctx, group)
	if len(providedapis.Claimed(group)) == 0 {
		return requests
	}
	others, err := groupindex.Competing(ctx, m.reader, group)
	if err != nil {
		return requests
	}
	for i := range others {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&others[i])})
	}
	return requests
}

// providersOf returns requests for the ClusterServiceVersions that provide an API.
func (m mapper) providersOf(ctx context.Context, hash string) []reconcile.Request {
	var list operatorsv1alpha1.ClusterServiceVersionList
	if err := m.reader.List(ctx, &list, client.MatchingFields{indexProvided: hash}, readOnly); err != nil {
		return nil
	}
	requests := make([]reconcile.Request, len(list.Items))
	for i := range list.Items {
		requests[i].NamespacedName = client.ObjectKeyFromObject(&list.Items[i])
	}
	return requests
}

// providingVersions maps a role for an API to the ClusterServiceVersions that provide it.
func (m mapper) providingVersions(ctx context.Context, obj client.Object) []reconcile.Request {
	var requests []reconcile.Request
	for key := range obj.GetLabels() {
		rest, ok := strings.CutPrefix(key, api.PrefixAggregate)
		if !ok {
			continue
		}
		hash, _, _ := strings.Cut(rest, "-")
		requests = append(requests, m.providersOf(ctx, hash)...)
	}
	return requests
}

// ownNamespace maps an object to its namespace.
func ownNamespace(_ context.Context, obj client.Object) []reconcile.Request {
	return []reconcile.Request{request(obj.GetNamespace())}
}

// groupsNamespace maps a role of a group to the group's namespace.
func groupsNamespace(_ context.Context, obj client.Object) []reconcile.Request {
	namespace, ok := groupNamespaceOf(obj)
	if !ok {
		return nil
	}
	return []reconcile.Request{request(namespace)}
}

// originals drops events of copied ClusterServiceVersions.
func originals() predicate.Predicate {
	return predicate.NewPredicateFuncs(func(obj client.Object) bool { return !isCopied(obj) })
}

// roleChanged admits creations, deletions, and updates of the fields that the roles for an API are
// compared by.
func roleChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok1 := e.ObjectOld.(*rbacv1.ClusterRole)
		after, ok2 := e.ObjectNew.(*rbacv1.ClusterRole)
		return !ok1 || !ok2 || !maps.Equal(before.Labels, after.Labels) || !equality.Semantic.DeepEqual(before.Rules, after.Rules) ||
			!equality.Semantic.DeepEqual(before.OwnerReferences, after.OwnerReferences)
	}}
}

// phaseChanged admits updates of a ClusterServiceVersion that change its spec or its phase.
func phaseChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok1 := e.ObjectOld.(*operatorsv1alpha1.ClusterServiceVersion)
		after, ok2 := e.ObjectNew.(*operatorsv1alpha1.ClusterServiceVersion)
		return !ok1 || !ok2 || before.Generation != after.Generation || before.Status.Phase != after.Status.Phase
	}}
}
