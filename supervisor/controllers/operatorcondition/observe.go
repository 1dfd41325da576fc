package operatorcondition

import (
	"context"
	"fmt"
	"slices"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	operatorsv2 "github.com/operator-framework/api/pkg/operators/v2"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// readOnly avoids copies of objects that are only read.
const readOnly = client.UnsafeDisableDeepCopy

// observe reads a version and its objects. It returns an empty observation for a version that needs
// no objects.
func (r *reconciler) observe(ctx context.Context, key client.ObjectKey) (input, error) {
	o := input{now: r.clock.Now()}
	var err error
	if o.csv, err = getOrNil(ctx, r.client, key, &operatorsv1alpha1.ClusterServiceVersion{}); err != nil || !wanted(o.csv) {
		return input{}, err
	}
	if o.condition, err = getOrNil(ctx, r.client, key, &operatorsv2.OperatorCondition{}); err != nil {
		return input{}, err
	}
	if o.role, err = getOrNil(ctx, r.client, key, &rbacv1.Role{}); err != nil {
		return input{}, err
	}
	if o.binding, err = getOrNil(ctx, r.client, key, &rbacv1.RoleBinding{}); err != nil {
		return input{}, err
	}
	o.replaced, err = r.replaced(ctx, key)
	return o, err
}

// replaced reports whether a version exists that replaces the given one.
func (r *reconciler) replaced(ctx context.Context, key client.ObjectKey) (bool, error) {
	versions := &operatorsv1alpha1.ClusterServiceVersionList{}
	if err := r.client.List(ctx, versions, client.InNamespace(key.Namespace), readOnly); err != nil {
		return false, fmt.Errorf("listing ClusterServiceVersions of namespace %s: %w", key.Namespace, err)
	}
	return slices.ContainsFunc(versions.Items, func(csv operatorsv1alpha1.ClusterServiceVersion) bool {
		return replaces(&csv, key.Name)
	}), nil
}

// getOrNil reads an object; the result is nil if it does not exist.
func getOrNil[T client.Object](ctx context.Context, c client.Reader, key client.ObjectKey, into T) (T, error) {
	var none T
	err := c.Get(ctx, key, into, readOnly)
	if apierrors.IsNotFound(err) {
		return none, nil
	}
	if err != nil {
		return none, fmt.Errorf("getting %T %s: %w", into, key, err)
	}
	return into, nil
}
