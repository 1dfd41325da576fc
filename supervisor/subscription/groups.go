package subscription

import (
	"fmt"
	"slices"
	"strings"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
)

// annotationExcludeGlobal, on an OperatorGroup, keeps the catalogs of the global
// namespace out of the resolution of its own.
const annotationExcludeGlobal = "olm.operatorframework.io/exclude-global-namespace-resolution"

// groups are the OperatorGroups of a namespace.
type groups struct {
	names []string
	// excludesGlobal and failForward are what the only one says.
	excludesGlobal, failForward bool
}

// groupsError says that a namespace does not have exactly one OperatorGroup, so
// that nothing can be resolved in it.
type groupsError struct {
	namespace string
	names     []string
}

// Error says how many there are and what to do.
func (e *groupsError) Error() string {
	text := fmt.Sprintf("found %d operatorGroups, expected 1; ", len(e.names))
	if len(e.names) == 0 {
		return text + fmt.Sprintf("create an OperatorGroup in namespace %s, which says which namespaces its operators serve", e.namespace)
	}
	return text + fmt.Sprintf("delete all but one of the OperatorGroups %s of namespace %s", strings.Join(e.names, ", "), e.namespace)
}

// problem is why nothing can be resolved in a namespace; nil when it can.
func (g groups) problem(namespace string) error {
	if len(g.names) == 1 {
		return nil
	}
	return &groupsError{namespace: namespace, names: g.names}
}

// groupsOf reads the OperatorGroups of a namespace.
func groupsOf(list []*operatorsv1.OperatorGroup) groups {
	var g groups
	for _, group := range list {
		g.names = append(g.names, group.Name)
	}
	slices.Sort(g.names)
	if len(list) == 1 {
		g.excludesGlobal = list[0].Annotations[annotationExcludeGlobal] == "true"
		g.failForward = list[0].UpgradeStrategy() == operatorsv1.UpgradeStrategyUnsafeFailForward
	}
	return g
}
