package installplan

import (
	"context"
	"fmt"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// account is the ServiceAccount with whose rights steps are applied.
type account struct {
	name  types.NamespacedName
	group types.NamespacedName
	uid   types.UID
}

// reference returns the account as the status of a plan refers to it; nil for no account.
func (a *account) reference() *corev1.ObjectReference {
	if a == nil {
		return nil
	}
	return &corev1.ObjectReference{APIVersion: "v1", Kind: "ServiceAccount", Namespace: a.name.Namespace, Name: a.name.Name, UID: a.uid}
}

// site states whether, and with which account, plans can be executed in a namespace.
type site struct {
	// problem states why nothing can be installed now; empty when installation is possible.
	problem string
	// account is set where the OperatorGroup names one.
	account *account
	// unbounded reports whether the OperatorGroup targets all namespaces and names no
	// service account.
	unbounded bool
}

// survey returns whether, and with which account, plans can be executed in a namespace. A namespace
// needs exactly one OperatorGroup.
//
// OperatorGroups are read with the reader. Before a write, the reader is the API server: a cache
// may still hold a group that names another account.
func (r *Reconciler) survey(ctx context.Context, reader client.Reader, namespace string) (site, error) {
	groups := &operatorsv1.OperatorGroupList{}
	if err := reader.List(ctx, groups, client.InNamespace(namespace), readOnly); err != nil {
		return site{}, fmt.Errorf("listing OperatorGroups of namespace %s: %w", namespace, err)
	}
	switch n := len(groups.Items); n {
	case 1:
	case 0:
		return site{problem: "no operator group found that is managing this namespace; create an OperatorGroup in it"}, nil
	default:
		return site{problem: fmt.Sprintf("more than one operator group(s) are managing this namespace count=%d; delete all but one", n)}, nil
	}
	group := &groups.Items[0]
	if group.Spec.ServiceAccountName == "" {
		return site{unbounded: targetsAll(group)}, nil
	}
	a := &account{
		name:  types.NamespacedName{Namespace: namespace, Name: group.Spec.ServiceAccountName},
		group: client.ObjectKeyFromObject(group),
	}
	found := accountMetadata()
	if err := r.client.Get(ctx, a.name, found); err != nil {
		if client.IgnoreNotFound(err) != nil {
			return site{}, fmt.Errorf("reading ServiceAccount %s: %w", a.name, err)
		}
		return site{problem: fmt.Sprintf("please make sure the service account exists. sa=%s operatorgroup=%s", a.name.Name, a.group), account: a}, nil
	}
	a.uid = found.UID
	return site{account: a}, nil
}

// targetsAll reports whether an OperatorGroup targets all namespaces.
func targetsAll(group *operatorsv1.OperatorGroup) bool {
	selector := group.Spec.Selector
	return len(group.Spec.TargetNamespaces) == 0 && (selector == nil || len(selector.MatchLabels)+len(selector.MatchExpressions) == 0)
}

// accountMetadata returns an empty ServiceAccount for reads of its metadata only.
func accountMetadata() *metav1.PartialObjectMetadata {
	found := &metav1.PartialObjectMetadata{}
	found.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ServiceAccount"))
	return found
}

// recordAccount sets the account whose rights the plan is executed with in the status of the plan.
func recordAccount(p *operatorsv1alpha1.InstallPlan, a *account) {
	want, have := a.reference(), p.Status.AttenuatedServiceAccountRef
	if want != nil && have != nil && *want == *have {
		return
	}
	p.Status.AttenuatedServiceAccountRef = want
}
