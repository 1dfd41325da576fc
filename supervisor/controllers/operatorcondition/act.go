package operatorcondition

import (
	"context"
	"fmt"

	operatorsv2 "github.com/operator-framework/api/pkg/operators/v2"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/apply"
)

// write applies an object of a version.
func write(ctx context.Context, c client.Client, obj client.Object) error {
	u, err := applied(obj)
	if err != nil {
		return err
	}
	err = apply.Apply(ctx, c, u, client.ForceOwnership)
	if err != nil {
		return fmt.Errorf("applying %s %s/%s: %w", u.GetKind(), u.GetNamespace(), u.GetName(), err)
	}
	return nil
}

// applied returns the form of an object that is applied. It includes empty lists of an
// OperatorCondition, because the values of another lifecycle manager would otherwise remain.
func applied(obj client.Object) (*unstructured.Unstructured, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return nil, fmt.Errorf("converting %s %s/%s: %w", obj.GetObjectKind().GroupVersionKind().Kind, obj.GetNamespace(), obj.GetName(), err)
	}
	delete(content, "status")
	unstructured.RemoveNestedField(content, "metadata", "creationTimestamp")
	if condition, is := obj.(*operatorsv2.OperatorCondition); is {
		for field, list := range map[string][]string{
			"deployments": condition.Spec.Deployments, "serviceAccounts": condition.Spec.ServiceAccounts,
		} {
			if err := unstructured.SetNestedStringSlice(content, list, "spec", field); err != nil {
				return nil, fmt.Errorf("encoding spec.%s of OperatorCondition %s/%s: %w", field, obj.GetNamespace(), obj.GetName(), err)
			}
		}
	}
	return &unstructured.Unstructured{Object: content}, nil
}

// remove deletes a binding if it still has the UID of b.
func remove(ctx context.Context, c client.Client, b *rbacv1.RoleBinding) error {
	err := apply.DeleteIf(ctx, c, b, apply.SameUID(b))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting RoleBinding %s/%s, whose roleRef cannot be changed: %w", b.Namespace, b.Name, err)
	}
	return nil
}

// writeStatus writes conditions to the status. It uses an optimistic lock, because a merge patch
// replaces the list as a whole.
func writeStatus(ctx context.Context, c client.Client, have *operatorsv2.OperatorCondition, conditions []metav1.Condition) error {
	changed := have.DeepCopy()
	changed.Status.Conditions = conditions
	if err := apply.PatchStatus(ctx, c, changed, apply.MergeFromLocked(have)); err != nil {
		return fmt.Errorf("writing the status of OperatorCondition %s/%s: %w", have.Namespace, have.Name, err)
	}
	return nil
}
