package operator

import (
	"cmp"
	"slices"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	operatorsv2 "github.com/operator-framework/api/pkg/operators/v2"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// reference returns a reference to a component. Apart from conditions, it contains nothing that
// changes during the object's lifetime.
func reference(gvk schema.GroupVersionKind, o client.Object, conditions []operatorsv1.Condition) operatorsv1.RichReference {
	return operatorsv1.RichReference{
		ObjectReference: &corev1.ObjectReference{
			APIVersion: gvk.GroupVersion().String(), Kind: gvk.Kind, Namespace: o.GetNamespace(), Name: o.GetName(),
		},
		Conditions: conditions,
	}
}

// components returns the components for the status of an Operator: the label selector and the
// sorted references.
func components(key string, refs []operatorsv1.RichReference) *operatorsv1.Components {
	sorted := slices.SortedFunc(slices.Values(refs), func(a, b operatorsv1.RichReference) int {
		return cmp.Or(
			cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.APIVersion, b.APIVersion),
			cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name),
		)
	})
	return &operatorsv1.Components{
		LabelSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: key, Operator: metav1.LabelSelectorOpExists},
		}},
		Refs: sorted,
	}
}

// conditionsOf returns the conditions of a complete object.
func conditionsOf(o client.Object) []operatorsv1.Condition {
	switch o := o.(type) {
	case *appsv1.Deployment:
		return convertConditions(o.Status.Conditions, func(c appsv1.DeploymentCondition) operatorsv1.Condition {
			out := condition(string(c.Type), c.Status, c.Reason, c.Message)
			return withTimes(out, &c.LastUpdateTime, &c.LastTransitionTime)
		})
	case *operatorsv1alpha1.Subscription:
		return convertConditions(o.Status.Conditions, func(c operatorsv1alpha1.SubscriptionCondition) operatorsv1.Condition {
			return withTimes(condition(string(c.Type), c.Status, c.Reason, c.Message), nil, c.LastTransitionTime)
		})
	case *operatorsv1alpha1.InstallPlan:
		return convertConditions(o.Status.Conditions, func(c operatorsv1alpha1.InstallPlanCondition) operatorsv1.Condition {
			return withTimes(condition(string(c.Type), c.Status, string(c.Reason), c.Message), c.LastUpdateTime, c.LastTransitionTime)
		})
	case *operatorsv1alpha1.ClusterServiceVersion:
		return phaseCondition(o.Status)
	case *apiextensionsv1.CustomResourceDefinition:
		return convertConditions(o.Status.Conditions, func(c apiextensionsv1.CustomResourceDefinitionCondition) operatorsv1.Condition {
			out := condition(string(c.Type), corev1.ConditionStatus(c.Status), c.Reason, c.Message)
			return withTimes(out, nil, &c.LastTransitionTime)
		})
	case *operatorsv2.OperatorCondition:
		return convertConditions(o.Status.Conditions, func(c metav1.Condition) operatorsv1.Condition {
			return withTimes(condition(c.Type, corev1.ConditionStatus(c.Status), c.Reason, c.Message), nil, &c.LastTransitionTime)
		})
	}
	return nil
}

// phaseCondition returns the phase of a version as a single condition. The conditions in the version's
// status are a history.
func phaseCondition(s operatorsv1alpha1.ClusterServiceVersionStatus) []operatorsv1.Condition {
	if s.Phase == operatorsv1alpha1.CSVPhaseNone {
		return nil
	}
	c := condition(string(s.Phase), corev1.ConditionTrue, string(s.Reason), s.Message)
	return []operatorsv1.Condition{withTimes(c, s.LastUpdateTime, s.LastTransitionTime)}
}

// unstructuredConditions returns the conditions of an unstructured object.
func unstructuredConditions(u *unstructured.Unstructured) []operatorsv1.Condition {
	var read struct {
		Status struct {
			Conditions []metav1.Condition `json:"conditions"`
		} `json:"status"`
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &read); err != nil {
		// Conditions in another form cannot be shown.
		return nil
	}
	return convertConditions(read.Status.Conditions, func(c metav1.Condition) operatorsv1.Condition {
		return withTimes(condition(c.Type, corev1.ConditionStatus(c.Status), c.Reason, c.Message), nil, &c.LastTransitionTime)
	})
}

// convertConditions converts conditions to those of the Operator API. It omits conditions without a type or
// a status, which the API rejects.
func convertConditions[T any](conditions []T, convert func(T) operatorsv1.Condition) []operatorsv1.Condition {
	var out []operatorsv1.Condition
	for _, c := range conditions {
		if one := convert(c); one.Type != "" && one.Status != "" {
			out = append(out, one)
		}
	}
	return out
}

func condition(kind string, status corev1.ConditionStatus, reason, message string) operatorsv1.Condition {
	return operatorsv1.Condition{Type: operatorsv1.ConditionType(kind), Status: status, Reason: reason, Message: message}
}

// withTimes sets the known times of a condition.
func withTimes(c operatorsv1.Condition, updated, changed *metav1.Time) operatorsv1.Condition {
	if !updated.IsZero() {
		c.LastUpdateTime = updated
	}
	if !changed.IsZero() {
		c.LastTransitionTime = changed
	}
	return c
}
