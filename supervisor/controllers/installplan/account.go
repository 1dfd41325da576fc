package installplan

import (
	"strings"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/apply"
	"github.com/chandlery/chandlery/supervisor/plansteps"
)

// account is the ServiceAccount with whose permissions steps are applied.
type account struct {
	name types.NamespacedName
	// group is the OperatorGroup that names the account; empty if only the plan does.
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

// createdByOthers reports whether another client created a plan.
func createdByOthers(p *operatorsv1alpha1.InstallPlan) bool {
	_, recorded := p.Annotations[api.AnnotationApproval]
	return !recorded && !plansteps.IsName(p.Name)
}

// setByOthers reports whether the status of a plan names an account that the supervisor did not write. fields are the
// managed fields of the plan.
func setByOthers(fields []metav1.ManagedFieldsEntry) bool {
	path := fieldpath.MakePathOrDie("status", "attenuatedServiceAccountRef")
	for i := range fields {
		if f := &fields[i]; apply.IsOurs(f.Manager) && f.FieldsV1 != nil {
			set := &fieldpath.Set{}
			if set.FromJSON(strings.NewReader(f.FieldsV1.GetRawString())) != nil || set.Has(path) {
				return false
			}
		}
	}
	return true
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

// recordAccount sets the account whose permissions the plan is executed with in the status of the plan. It leaves an
// account that another client set: after a write, the supervisor would take the account for its own.
func recordAccount(p *operatorsv1alpha1.InstallPlan, a *account) {
	if a != nil && a.group.Name == "" {
		return
	}
	want, have := a.reference(), p.Status.AttenuatedServiceAccountRef
	if want != nil && have != nil && *want == *have {
		return
	}
	p.Status.AttenuatedServiceAccountRef = want
}
