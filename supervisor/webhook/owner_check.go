package webhook

import (
	"slices"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chandlery/chandlery/supervisor/api"
)

// OwnerCheck determines whose objects a ClusterServiceVersion may take over: its own, those of its predecessors, and
// those whose owner is deleted.
type OwnerCheck struct {
	// CSV is the version that takes over.
	CSV *operatorsv1alpha1.ClusterServiceVersion
	// Predecessors are the names of its predecessors, all in its namespace.
	Predecessors []string
	// Exists reports whether a ClusterServiceVersion exists.
	Exists func(types.NamespacedName) bool
}

// OtherOwner returns the owner of an object that may not be taken over; empty if it may.
func (c OwnerCheck) OtherOwner(obj metav1.Object) string {
	owners := slices.DeleteFunc(slices.Clone(obj.GetOwnerReferences()), func(r metav1.OwnerReference) bool {
		return r.Kind != operatorsv1alpha1.ClusterServiceVersionKind
	})
	// In a namespace, an object may have several owners. It may be taken over if one of them is related.
	var other string
	for _, r := range owners {
		name := types.NamespacedName{Namespace: obj.GetNamespace(), Name: r.Name}
		if r.UID == c.CSV.UID || c.mayAdopt(name) {
			return ""
		}
		other = "csv " + name.String()
	}
	if other != "" {
		return other
	}
	return c.otherOwnerByLabels(obj.GetLabels())
}

func (c OwnerCheck) otherOwnerByLabels(labels map[string]string) string {
	owner := types.NamespacedName{Namespace: labels[api.LabelOwnerNamespace], Name: labels[api.LabelOwner]}
	switch {
	case owner.Name == "" || owner.Namespace == "" || labels[api.LabelOwnerKind] != operatorsv1alpha1.ClusterServiceVersionKind:
		return noOwner
	case c.mayAdopt(owner):
		return ""
	}
	return "csv " + owner.String()
}

func (c OwnerCheck) mayAdopt(name types.NamespacedName) bool {
	home := name.Namespace == c.CSV.Namespace
	return (home && (name.Name == c.CSV.Name || slices.Contains(c.Predecessors, name.Name))) || !c.Exists(name)
}
