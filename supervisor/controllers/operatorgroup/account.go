package operatorgroup

import (
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chandlery/chandlery/supervisor/api/olmtext"
)

// setAccount sets the ServiceAccount that the group's operators are installed with. The status has
// a reference only while the account exists. If spec has a name and status has no reference,
// installations must wait. A reference of another lifecycle manager stays if it identifies the same
// object.
func setAccount(want *operatorsv1.OperatorGroupStatus, o statusInput, now time.Time) {
	name := o.Group.Spec.ServiceAccountName
	if name == "" || o.Account != nil {
		apimeta.RemoveStatusCondition(&want.Conditions, operatorsv1.OperatorGroupServiceAccountCondition)
	}
	switch {
	case name == "":
		want.ServiceAccountRef = nil
	case o.Account != nil:
		if !refersTo(want.ServiceAccountRef, o.Account) {
			want.ServiceAccountRef = &corev1.ObjectReference{
				APIVersion: "v1", Kind: "ServiceAccount", Namespace: o.Account.Namespace, Name: o.Account.Name, UID: o.Account.UID,
			}
		}
	default:
		want.ServiceAccountRef = nil
		apimeta.SetStatusCondition(&want.Conditions, metav1.Condition{
			Type:               operatorsv1.OperatorGroupServiceAccountCondition,
			Status:             metav1.ConditionTrue,
			Reason:             operatorsv1.OperatorGroupServiceAccountReason,
			Message:            olmtext.GroupAccountMissing(name),
			ObservedGeneration: o.Group.Generation,
			LastTransitionTime: metav1.NewTime(now),
		})
	}
}

func refersTo(ref *corev1.ObjectReference, account *metav1.PartialObjectMetadata) bool {
	return ref != nil && ref.Kind == "ServiceAccount" &&
		ref.Namespace == account.Namespace && ref.Name == account.Name && ref.UID == account.UID
}

// accountMetadata returns an empty object for reading and watching ServiceAccounts as metadata.
func accountMetadata() *metav1.PartialObjectMetadata {
	account := &metav1.PartialObjectMetadata{}
	account.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ServiceAccount"))
	return account
}
