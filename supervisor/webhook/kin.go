package webhook

import (
	"slices"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chandlery/chandlery/supervisor/api"
)

// Kin determines whose objects a ClusterServiceVersion may take over: its own, those of its predecessors, and
// those whose owner is deleted.
type Kin struct {
	// CSV is the version that takes over.
	CSV *operatorsv1alpha1.ClusterServiceVersion
	// Chain are the names of its predecessors, all in its namespace.
	Chain []string
	// Lives reports whether a ClusterServiceVersion exists.
	Lives func(types.NamespacedName) bool
}

// Foreign returns the owner of an object that may not be taken over; empty if it may.
func (k Kin) Foreign(obj metav1.Object) string {
	owners := slices.DeleteFunc(slices.Clone(obj.GetOwnerReferences()), func(r metav1.OwnerReference) bool {
		return r.Kind != operatorsv1alpha1.ClusterServiceVersionKind
	})
	// In a namespace, an object may have several owners. It may be taken over if one of them is related.
	var foreign string
	for _, r := range owners {
		name := types.NamespacedName{Namespace: obj.GetNamespace(), Name: r.Name}
		if r.UID == k.CSV.UID || k.related(name) {
			return ""
		}
		foreign = "csv " + name.String()
	}
	if foreign != "" {
		return foreign
	}
	return k.foreignLabels(obj.GetLabels())
}

func (k Kin) foreignLabels(labels map[string]string) string {
	owner := types.NamespacedName{Namespace: labels[api.LabelOwnerNamespace], Name: labels[api.LabelOwner]}
	switch {
	case owner.Name == "" || owner.Namespace == "" || labels[api.LabelOwnerKind] != operatorsv1alpha1.ClusterServiceVersionKind:
		return nobody
	case k.related(owner):
		return ""
	}
	return "csv " + owner.String()
}

func (k Kin) related(name types.NamespacedName) bool {
	home := name.Namespace == k.CSV.Namespace
	return (home && (name.Name == k.CSV.Name || slices.Contains(k.Chain, name.Name))) || !k.Lives(name)
}
