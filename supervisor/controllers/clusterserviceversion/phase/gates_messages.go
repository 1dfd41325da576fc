package phase

import (
	"fmt"
	"slices"
	"strings"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
)

// noGroupMessage returns the message for a namespace without an OperatorGroup.
func noGroupMessage(o Input) string {
	return fmt.Sprintf("%s: create an OperatorGroup in namespace %s, which selects the namespaces that its operators serve",
		messageNoGroup, o.CSV.Namespace)
}

// manyGroupsMessage returns the message for a namespace with several OperatorGroups.
func manyGroupsMessage(o Input) string {
	names := make([]string, 0, len(o.Groups))
	for i := range o.Groups {
		names = append(names, o.Groups[i].Name)
	}
	slices.Sort(names)
	return fmt.Sprintf("%s: delete all but one of the OperatorGroups %s of namespace %s",
		messageManyGroups, strings.Join(names, ", "), o.CSV.Namespace)
}

// misfit returns what to change about an OperatorGroup whose namespaces a version cannot watch.
func misfit(csv *operatorsv1alpha1.ClusterServiceVersion, group *operatorsv1.OperatorGroup) string {
	field, hint := "spec.targetNamespaces", " (without it all namespaces are selected)"
	if group.Spec.Selector != nil && len(group.Spec.TargetNamespaces) == 0 {
		field, hint = "spec.selector", ""
	}
	if len(group.Status.Namespaces) == 0 {
		return fmt.Sprintf("correct %s of OperatorGroup %s in namespace %s: it selects no existing namespace", field, group.Name, group.Namespace)
	}
	var modes []string
	for _, m := range csv.Spec.InstallModes {
		if m.Supported {
			modes = append(modes, string(m.Type))
		}
	}
	if len(modes) == 0 {
		return "no entry of spec.installModes is supported; ask the author of the bundle to correct it"
	}
	return fmt.Sprintf("change %s of OperatorGroup %s in namespace %s%s: this version supports %s",
		field, group.Name, group.Namespace, hint, strings.Join(modes, ", "))
}
