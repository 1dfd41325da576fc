package providedapis

import (
	"cmp"
	"slices"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Claimed returns the APIs that a group has claimed.
func Claimed(group *operatorsv1.OperatorGroup) Set {
	return Parse(group.Annotations[operatorsv1.OperatorGroupProvidedAPIsAnnotationKey])
}

// Intersect reports whether there is a namespace that operators of both groups
// reach. An operator reaches the targets of its group and, unless the group has
// none, the namespace that it runs in.
func Intersect(a, b *operatorsv1.OperatorGroup) bool {
	left, right := reach(a), reach(b)
	if len(left) == 0 || len(right) == 0 {
		return false
	}
	if slices.Contains(left, corev1.NamespaceAll) || slices.Contains(right, corev1.NamespaceAll) {
		return true
	}
	return slices.ContainsFunc(left, func(namespace string) bool { return slices.Contains(right, namespace) })
}

func reach(group *operatorsv1.OperatorGroup) []string {
	targets := group.Status.Namespaces
	if len(targets) == 0 || slices.Contains(targets, corev1.NamespaceAll) {
		return targets
	}
	return append(slices.Clone(targets), group.Namespace)
}

// outranks reports whether, of two groups that claim an API, the first keeps it:
// what an administrator fixed goes before what was found; then the older goes
// first; and of two as old, the one whose namespace and name come first.
func outranks(a, b *operatorsv1.OperatorGroup) bool {
	if a.Spec.StaticProvidedAPIs != b.Spec.StaticProvidedAPIs {
		return a.Spec.StaticProvidedAPIs
	}
	return cmp.Or(
		a.CreationTimestamp.Compare(b.CreationTimestamp.Time),
		cmp.Compare(a.Namespace, b.Namespace),
		cmp.Compare(a.Name, b.Name),
	) < 0
}

// rivalsOf returns which of the APIs other groups keep from a group, and which
// groups those are, sorted. A group that has claimed an API itself yields only to
// one that outranks it; a group that has not yields to every claim. Groups of one
// namespace are not rivals: where there are several, none is in force.
func rivalsOf(group *operatorsv1.OperatorGroup, others []operatorsv1.OperatorGroup, apis Set) (Set, []types.NamespacedName) {
	kept, rivals := Set{}, []types.NamespacedName(nil)
	mine := Claimed(group)
	for i := range others {
		other := &others[i]
		if other.Namespace == group.Namespace {
			continue
		}
		contested := apis.Both(Claimed(other))
		if outranks(group, other) {
			contested = contested.Without(mine)
		}
		if len(contested) > 0 && Intersect(group, other) {
			kept.Add(contested)
			rivals = append(rivals, types.NamespacedName{Namespace: other.Namespace, Name: other.Name})
		}
	}
	slices.SortFunc(rivals, func(a, b types.NamespacedName) int { return cmp.Compare(a.String(), b.String()) })
	return kept, rivals
}
