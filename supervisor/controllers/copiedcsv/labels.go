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

// Prefixes of labels and annotations that a copy does not have.
const (
	// prefixPublic begins the labels that roles of operators have for everybody to
	// select on.
	prefixPublic = "olm."
)

// originOf names the version that a copied version, role or binding was made for; ok is
// false if it was made for none.
func originOf(obj metav1.Object) (origin types.NamespacedName, ok bool) {
	from := obj.GetLabels()[api.LabelCopiedFrom]
	return types.NamespacedName{Namespace: from, Name: obj.GetName()}, from != ""
}

// ownerOf names the version that the owner labels of a role or binding name: the one it
// was copied for if it is a copy, or else the one that it is a part of.
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

// shownLabel says whether a copy has a label of its origin.
func shownLabel(key string) bool {
	return !strings.HasPrefix(key, api.PrefixComponent) && !strings.HasPrefix(key, api.Prefix)
}

// shownAnnotation says whether a copy has an annotation of its origin. The targets of a
// group are nobody's business in but one of them, and what kubectl remembers is as large
// as the object and about another one.
func shownAnnotation(key string) bool {
	return key != operatorsv1.OperatorGroupTargetsAnnotationKey && key != corev1.LastAppliedConfigAnnotation &&
		!strings.HasPrefix(key, api.Prefix)
}
