package operatorgroup

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// namespace holds the fields of a Namespace that target selection needs.
type namespace struct {
	Name   string
	Labels map[string]string
}

// targets returns the sorted target namespaces of a group. A group without a list and a selector
// targets all namespaces, which is returned as one empty name. The list takes precedence over the
// selector. It may contain namespaces that do not exist yet.
func targets(spec operatorsv1.OperatorGroupSpec, namespaces []namespace) ([]string, error) {
	if len(spec.TargetNamespaces) > 0 {
		return explicitTargets(spec.TargetNamespaces)
	}
	if isEmptySelector(spec.Selector) {
		return []string{corev1.NamespaceAll}, nil
	}
	selector, err := metav1.LabelSelectorAsSelector(spec.Selector)
	if err != nil {
		return nil, fmt.Errorf("spec.selector: %w", err)
	}
	var selected []string
	for _, ns := range namespaces {
		if selector.Matches(labels.Set(ns.Labels)) {
			selected = append(selected, ns.Name)
		}
	}
	slices.Sort(selected)
	return selected, nil
}

func explicitTargets(names []string) ([]string, error) {
	if slices.Contains(names, corev1.NamespaceAll) {
		return nil, errors.New("spec.targetNamespaces: contains an empty name; " +
			"remove the list to target all namespaces")
	}
	sorted := slices.Sorted(slices.Values(names))
	return slices.Compact(sorted), nil
}

func isEmptySelector(s *metav1.LabelSelector) bool {
	return s == nil || len(s.MatchLabels)+len(s.MatchExpressions) == 0
}

// isGlobal reports whether the target namespaces include all namespaces.
func isGlobal(namespaces []string) bool {
	return slices.Contains(namespaces, corev1.NamespaceAll)
}

// labelChanges returns the group labels to set on (true) and to remove from (false) a namespace.
// The result is one label for each group that targets the namespace by name. Groups that target all
// namespaces set no labels, because such a label would select every namespace.
func labelChanges(ns namespace, groups []operatorsv1.OperatorGroup) map[string]bool {
	changes := map[string]bool{}
	for key := range ns.Labels {
		if operatorsv1.IsOperatorGroupLabel(key) {
			changes[key] = false
		}
	}
	for i := range groups {
		group := &groups[i]
		if isGlobal(group.Status.Namespaces) || !slices.Contains(group.Status.Namespaces, ns.Name) {
			continue
		}
		changes[labelKey(group)] = true
	}
	maps.DeleteFunc(changes, func(key string, want bool) bool {
		value, has := ns.Labels[key]
		return want && has && value == ""
	})
	return changes
}

func labelKey(group *operatorsv1.OperatorGroup) string {
	return operatorsv1.OperatorGroupLabelPrefix + string(group.GetUID())
}
