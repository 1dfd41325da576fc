package clusterserviceversion

import (
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/apply"
	"github.com/chandlery/chandlery/supervisor/plan"
)

const (
	// FieldManager is the name under which this package writes.
	FieldManager = apply.FieldManager
	// Finalizer keeps a ClusterServiceVersion until its cluster-scoped objects
	// are gone.
	Finalizer = plan.FinalizerCleanup

	// LabelManaged marks every object made for an operator.
	LabelManaged = plan.LabelManaged
	// LabelOwner names the ClusterServiceVersion that an object was made for.
	// With the two labels below it reaches where owner references cannot, from
	// cluster scope into a namespace.
	LabelOwner = plan.LabelOwner
	// LabelOwnerNamespace is the namespace of the owner.
	LabelOwnerNamespace = plan.LabelOwnerNamespace
	// LabelOwnerKind is the kind of the owner.
	LabelOwnerKind = plan.LabelOwnerKind
	// LabelDeploymentHash holds the hash of the Deployment spec as it was
	// applied.
	LabelDeploymentHash = "olm.deployment-spec-hash"
	// LabelLifted marks a cluster role or binding that repeats a namespaced one
	// for all namespaces.
	LabelLifted = "chandlery.dev/lifted"
)

// ownerLabels returns the labels that name csv as the owner of an object.
func ownerLabels(csv *operatorsv1alpha1.ClusterServiceVersion) client.MatchingLabels {
	return client.MatchingLabels{
		LabelOwner:          csv.Name,
		LabelOwnerNamespace: csv.Namespace,
		LabelOwnerKind:      operatorsv1alpha1.ClusterServiceVersionKind,
	}
}

// owned returns the labels of an object made for csv.
func owned(csv *operatorsv1alpha1.ClusterServiceVersion) map[string]string {
	return plan.OwnerLabels(csv.Name, csv.Namespace)
}

// labelledOwner returns the ClusterServiceVersion that an object's labels name;
// ok is false when they name none.
func labelledOwner(labels map[string]string) (owner types.NamespacedName, ok bool) {
	if labels[LabelOwnerKind] != operatorsv1alpha1.ClusterServiceVersionKind {
		return types.NamespacedName{}, false
	}
	owner = types.NamespacedName{Namespace: labels[LabelOwnerNamespace], Name: labels[LabelOwner]}
	return owner, owner.Name != "" && owner.Namespace != ""
}

// ownerReference refers to csv without blocking its deletion: garbage follows
// its owner, it does not hold it up.
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
