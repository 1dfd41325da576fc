package providedapis

import (
	"slices"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	corev1 "k8s.io/api/core/v1"
)

// Claimed returns the APIs that a group has claimed.
func Claimed(group *operatorsv1.OperatorGroup) Set {
	return Parse(group.Annotations[operatorsv1.OperatorGroupProvidedAPIsAnnotationKey])
}

// Intersect reports whether operators of both groups reach a common namespace. An operator reaches the targets
// of its group and, unless the group has none, its own namespace.
func Intersect(a, b *operatorsv1.OperatorGroup) bool {
	left, right := OperatorNamespaces(a), OperatorNamespaces(b)
	if len(left) == 0 || len(right) == 0 {
		return false
	}
	if slices.Contains(left, corev1.NamespaceAll) || slices.Contains(right, corev1.NamespaceAll) {
		return true
	}
	return slices.ContainsFunc(left, func(namespace string) bool { return slices.Contains(right, namespace) })
}

// OperatorNamespaces returns the namespaces that the operators of a group reach; the empty name stands for all.
func OperatorNamespaces(group *operatorsv1.OperatorGroup) []string {
	targets := group.Status.Namespaces
	if len(targets) == 0 || slices.Contains(targets, corev1.NamespaceAll) {
		return targets
	}
	return append(slices.Clone(targets), group.Namespace)
}
