package copiedcsv

import (
	"strings"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chandlery/chandlery/supervisor/api"
)

// Prefixes of labels that copied roles and bindings keep.
const (
	// prefixPublic is the prefix of the labels that users and tools select roles by.
	prefixPublic = "olm."
)

// originOf returns the version that a copied version was made from. ok is false if the object is
// not a copy.
func originOf(obj metav1.Object) (origin types.NamespacedName, ok bool) {
	from := obj.GetLabels()[api.LabelCopiedFrom]
	return types.NamespacedName{Namespace: from, Name: obj.GetName()}, from != ""
}

// ownerOf returns the version in the owner labels of a role or binding. For a copy, it returns the
// original version.
func ownerOf(obj metav1.Object) (owner types.NamespacedName, ok bool) {
	labels := obj.GetLabels()
	if labels[api.LabelOwnerKind] != operatorsv1alpha1.ClusterServiceVersionKind {
		return types.NamespacedName{}, false
	}
	owner = types.NamespacedName{Namespace: labels[api.LabelOwnerNamespace], Name: labels[api.LabelOwner]}
	if from := labels[api.LabelCopiedFrom]; from != "" {
		owner.Namespace = from
	}
	return owner, owner.Name != "" && owner.Namespace != ""
}

func isCopied(obj metav1.Object) bool {
	_, ok := obj.GetLabels()[api.LabelCopiedFrom]
	return ok
}

// isCopiedLabel reports whether a copy keeps a label of its origin.
func isCopiedLabel(key string) bool {
	return !strings.HasPrefix(key, api.PrefixComponent) && !strings.HasPrefix(key, api.Prefix)
}

// isCopiedAnnotation reports whether a copy keeps an annotation of its origin. Users of one target
// namespace must not see the other targets. The last-applied annotation of kubectl is as large as
// the object and belongs to the original.
func isCopiedAnnotation(key string) bool {
	return key != operatorsv1.OperatorGroupTargetsAnnotationKey && key != corev1.LastAppliedConfigAnnotation &&
		!strings.HasPrefix(key, api.Prefix)
}
