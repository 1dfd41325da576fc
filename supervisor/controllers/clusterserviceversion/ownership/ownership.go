// Package ownership names ClusterServiceVersions as owners of objects by labels. Labels work across
// namespaces and for cluster-scoped objects, where owner references do not.
package ownership

import (
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/plansteps"
)

// Labels returns the labels that name csv as the owner of an object.
func Labels(csv *operatorsv1alpha1.ClusterServiceVersion) client.MatchingLabels {
	return client.MatchingLabels{
		api.LabelOwner:          csv.Name,
		api.LabelOwnerNamespace: csv.Namespace,
		api.LabelOwnerKind:      operatorsv1alpha1.ClusterServiceVersionKind,
	}
}

// ManagedLabels returns the labels of an object that the supervisor creates for csv.
func ManagedLabels(csv *operatorsv1alpha1.ClusterServiceVersion) map[string]string {
	return plansteps.OwnerLabels(csv.Name, csv.Namespace)
}

// Of returns the ClusterServiceVersion that the labels of an object name; ok is false when they name
// none.
func Of(labels map[string]string) (owner types.NamespacedName, ok bool) {
	if labels[api.LabelOwnerKind] != operatorsv1alpha1.ClusterServiceVersionKind {
		return types.NamespacedName{}, false
	}
	owner = types.NamespacedName{Namespace: labels[api.LabelOwnerNamespace], Name: labels[api.LabelOwner]}
	return owner, owner.Name != "" && owner.Namespace != ""
}

// Names reports whether the labels of an object name csv as its owner.
func Names(labels map[string]string, csv *operatorsv1alpha1.ClusterServiceVersion) bool {
	for key, value := range Labels(csv) {
		if labels[key] != value {
			return false
		}
	}
	return true
}
