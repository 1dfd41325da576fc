package phase

import (
	"fmt"
	"slices"
	"strings"
)

// noGroupRemedy returns what to do about a namespace without an OperatorGroup.
func noGroupRemedy(o Input) string {
	return fmt.Sprintf("create an OperatorGroup in namespace %s, which selects the namespaces that its operators serve", o.CSV.Namespace)
}

// manyGroupsRemedy returns what to do about a namespace with several OperatorGroups.
func manyGroupsRemedy(o Input) string {
	names := make([]string, 0, len(o.Groups))
	for i := range o.Groups {
		names = append(names, o.Groups[i].Name)
	}
	slices.Sort(names)
	return fmt.Sprintf("delete all but one of the OperatorGroups %s of namespace %s", strings.Join(names, ", "), o.CSV.Namespace)
}

// misfit returns what to change about an OperatorGroup whose namespaces a version cannot watch.
func misfit(o Input) string {
	csv, group := o.CSV, &o.Groups[0]
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
