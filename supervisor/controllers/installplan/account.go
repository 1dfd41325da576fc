package installplan

import (
	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// account is the ServiceAccount with whose permissions steps are applied.
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

// namespaceState states whether, and with which account, plans can be executed in a namespace.
type namespaceState struct {
	// problem states why nothing can be installed now; empty when installation is possible.
	problem string
	// account is set where the OperatorGroup names one.
	account *account
	// unbounded reports whether the OperatorGroup targets all namespaces and names no
	// service account.
	unbounded bool
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

// recordAccount sets the account whose permissions the plan is executed with in the status of the plan.
func recordAccount(p *operatorsv1alpha1.InstallPlan, a *account) {
	want, have := a.reference(), p.Status.AttenuatedServiceAccountRef
	if want != nil && have != nil && *want == *have {
		return
	}
	p.Status.AttenuatedServiceAccountRef = want
}
