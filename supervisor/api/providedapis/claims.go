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

// outranks reports whether the first of two groups that claim an API keeps it. A fixed list of an administrator
// precedes a derived one. Then the older group takes precedence, and at the same age the one whose namespace
// and name come first.
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

// competitor is another group that reaches a namespace of a group.
type competitor struct {
	key    types.NamespacedName
	claims Set
	// yields is true if the competitor gives up what both have claimed.
	yields bool
}

// competitorsOf returns the groups with claims that reach a namespace of this one, sorted. Groups of one namespace
// do not compete: if there are several, none of them is effective.
func competitorsOf(group *operatorsv1.OperatorGroup, others []operatorsv1.OperatorGroup) []competitor {
	var found []competitor
	for i := range others {
		other := &others[i]
		if other.Namespace == group.Namespace || other.Annotations[operatorsv1.OperatorGroupProvidedAPIsAnnotationKey] == "" || !Intersect(group, other) {
			continue
		}
		found = append(found, competitor{
			key:    types.NamespacedName{Namespace: other.Namespace, Name: other.Name},
			claims: Claimed(other),
			yields: outranks(group, other),
		})
	}
	slices.SortFunc(found, func(a, b competitor) int { return cmp.Compare(a.key.String(), b.key.String()) })
	return found
}

// contested returns the APIs that competitors keep from a group with these claims, and the names of the
// competitors. A group that has claimed an API itself yields only to one that outranks it. A group that has not
// claimed it yields to every claim.
func contested(competitors []competitor, claimed, apis Set) (kept Set, by []types.NamespacedName) {
	kept = Set{}
	for _, c := range competitors {
		common := apis.Both(c.claims)
		if c.yields {
			common = common.Without(claimed)
		}
		if len(common) > 0 {
			kept.Add(common)
			by = append(by, c.key)
		}
	}
	return kept, by
}
