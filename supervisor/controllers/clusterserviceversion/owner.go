package clusterserviceversion

import (
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/plan"
)

// ownerLabels returns the labels that name csv as the owner of an object.
func ownerLabels(csv *operatorsv1alpha1.ClusterServiceVersion) client.MatchingLabels {
	return client.MatchingLabels{
		api.LabelOwner:          csv.Name,
		api.LabelOwnerNamespace: csv.Namespace,
		api.LabelOwnerKind:      operatorsv1alpha1.ClusterServiceVersionKind,
	}
}

// owned returns the labels of an object that is created for csv.
func owned(csv *operatorsv1alpha1.ClusterServiceVersion) map[string]string {
	return plan.OwnerLabels(csv.Name, csv.Namespace)
}

// labelledOwner returns the ClusterServiceVersion that an object's labels name; ok is false when
// they name none.
func labelledOwner(labels map[string]string) (owner types.NamespacedName, ok bool) {
	if labels[api.LabelOwnerKind] != operatorsv1alpha1.ClusterServiceVersionKind {
		return types.NamespacedName{}, false
	}
	owner = types.NamespacedName{Namespace: labels[api.LabelOwnerNamespace], Name: labels[api.LabelOwner]}
	return owner, owner.Name != "" && owner.Namespace != ""
}

// ownerReference returns a reference to csv that does not block its deletion.
func ownerReference(csv *operatorsv1alpha1.ClusterServiceVersion) metav1.OwnerReference {
	return metav1.OwnerReference{
		APIVersion:         operatorsv1alpha1.ClusterServiceVersionAPIVersion,
		Kind:               operatorsv1alpha1.ClusterServiceVersionKind,
		Name:               csv.Name,
		UID:                csv.UID,
		Controller:         new(false),
		BlockOwnerDeletion: new(false),
	}
}
