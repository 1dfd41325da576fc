package informer

import (
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/chandlery/chandlery/supervisor/api"
)

// IgnoreCauses returns a predicate for ClusterServiceVersions that rejects updates of AnnotationCause alone. Only
// the controller that writes the annotation reads it.
func IgnoreCauses() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, isVersion := e.ObjectOld.(*operatorsv1alpha1.ClusterServiceVersion)
		after, isAlso := e.ObjectNew.(*operatorsv1alpha1.ClusterServiceVersion)
		return !isVersion || !isAlso || before.Annotations[api.AnnotationCause] == after.Annotations[api.AnnotationCause] ||
			!equality.Semantic.DeepEqual(before.Status, after.Status) ||
			!equality.Semantic.DeepEqual(withoutCause(&before.ObjectMeta), withoutCause(&after.ObjectMeta))
	}}
}

// withoutCause returns metadata without what an update of AnnotationCause changes.
func withoutCause(m *metav1.ObjectMeta) *metav1.ObjectMeta {
	m = m.DeepCopy()
	m.ResourceVersion, m.ManagedFields = "", nil
	delete(m.Annotations, api.AnnotationCause)
	return m
}
