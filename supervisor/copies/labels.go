package copies

import (
	"strings"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chandlery/chandlery/supervisor/plan"
)

// LabelCopiedFrom is on every copy, of a version as of a role or a binding, and names the
// namespace of what was copied.
const LabelCopiedFrom = operatorsv1alpha1.CopiedLabelKey

// Prefixes of labels and annotations that a copy does not have.
const (
	// prefixComponent marks the components of an installed operator. Copies are none.
	prefixComponent = "operators.coreos.com/"
	// prefixOwn is our own record of an installation, which a copy is not.
	prefixOwn = "chandlery.dev/"
	// prefixPublic begins the labels that roles of operators have for everybody to
	// select on.
	prefixPublic = "olm."
)

// originOf names the version that a copied version, role or binding was made for; ok is
// false if it was made for none.
func originOf(obj metav1.Object) (origin types.NamespacedName, ok bool) {
	from := obj.GetLabels()[LabelCopiedFrom]
	return types.NamespacedName{Namespace: from, Name: obj.GetName()}, from != ""
}

// ownerOf names the version that the owner labels of a role or binding name: the one it
// was copied for if it is a copy, or else the one that it is a part of.
func ownerOf(obj metav1.Object) (owner types.NamespacedName, ok bool) {
	labels := obj.GetLabels()
	if labels[plan.LabelOwnerKind] != operatorsv1alpha1.ClusterServiceVersionKind {
		return types.NamespacedName{}, false
	}
	owner = types.NamespacedName{Namespace: labels[plan.LabelOwnerNamespace], Name: labels[plan.LabelOwner]}
	if from := labels[LabelCopiedFrom]; from != "" {
		owner.Namespace = from
	}
	return owner, owner.Name != "" && owner.Namespace != ""
}

func isCopied(obj metav1.Object) bool {
	_, ok := obj.GetLabels()[LabelCopiedFrom]
	return ok
}

// shownLabel says whether a copy has a label of its origin.
func shownLabel(key string) bool {
	return !strings.HasPrefix(key, prefixComponent) && !strings.HasPrefix(key, prefixOwn)
}

// shownAnnotation says whether a copy has an annotation of its origin. The targets of a
// group are nobody's business in but one of them, and what kubectl remembers is as large
// as the object and about another one.
func shownAnnotation(key string) bool {
	return key != operatorsv1.OperatorGroupTargetsAnnotationKey && key != corev1.LastAppliedConfigAnnotation &&
		!strings.HasPrefix(key, prefixOwn)
}
