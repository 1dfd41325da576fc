package installplan

import (
	"context"
	"fmt"
	"slices"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// observeNamespace returns whether, and with which account, plans can be executed in a namespace. A
// namespace needs exactly one OperatorGroup.
//
// OperatorGroups are read with groups. Before a write, that is the API server: a cache may still
// hold a group that names another account.
func observeNamespace(ctx context.Context, groups, cached client.Reader, namespace string) (namespaceState, error) {
	list := &operatorsv1.OperatorGroupList{}
	if err := groups.List(ctx, list, client.InNamespace(namespace), readOnly); err != nil {
		return namespaceState{}, fmt.Errorf("listing OperatorGroups of namespace %s: %w", namespace, err)
	}
	switch n := len(list.Items); n {
	case 1:
	case 0:
		return namespaceState{problem: "no operator group found that is managing this namespace; create an OperatorGroup in it"}, nil
	default:
		return namespaceState{problem: fmt.Sprintf("more than one operator group(s) are managing this namespace count=%d; delete all but one", n)}, nil
	}
	group := &list.Items[0]
	if group.Spec.ServiceAccountName == "" {
		return namespaceState{unbounded: targetsAll(group)}, nil
	}
	a := &account{
		name:  types.NamespacedName{Namespace: namespace, Name: group.Spec.ServiceAccountName},
		group: client.ObjectKeyFromObject(group),
	}
	found := accountMetadata()
	if err := cached.Get(ctx, a.name, found); err != nil {
		if client.IgnoreNotFound(err) != nil {
			return namespaceState{}, fmt.Errorf("reading ServiceAccount %s: %w", a.name, err)
		}
		return namespaceState{problem: fmt.Sprintf("please make sure the service account exists. sa=%s operatorgroup=%s", a.name.Name, a.group), account: a}, nil
	}
	a.uid = found.UID
	return namespaceState{account: a}, nil
}

// referred reports whether a Subscription refers to a plan. It also reports true for a plan that has
// no Subscription as owner.
func referred(ctx context.Context, cached client.Reader, p *operatorsv1alpha1.InstallPlan) (bool, error) {
	list := &operatorsv1alpha1.SubscriptionList{}
	if err := cached.List(ctx, list, client.InNamespace(p.Namespace), readOnly); err != nil {
		return false, err //nolint:wrapcheck // the cache fails only while it stops
	}
	for i := range list.Items {
		if ref := list.Items[i].Status.InstallPlanRef; ref != nil && ref.UID == p.UID {
			return true, nil
		}
	}
	return !slices.ContainsFunc(p.OwnerReferences, func(ref metav1.OwnerReference) bool {
		return ref.Kind == operatorsv1alpha1.SubscriptionKind
	}), nil
}
