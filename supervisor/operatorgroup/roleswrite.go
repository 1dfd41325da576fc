package operatorgroup

import (
	"context"
	"errors"
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/apply"
)

// roleWriter writes cluster roles that were found to differ in the cache.
type roleWriter struct {
	client client.Client
	live   client.Reader
}

// put brings a cluster role from what it is in the cache, nil for not there, to
// what is wanted. What another lifecycle manager set on it is taken over. A role
// that is another one by now, or is there by now, is a conflict: what was decided
// by looking at the cache need not hold for it.
func (w roleWriter) put(ctx context.Context, want, have *rbacv1.ClusterRole) (apply.Result, error) {
	u, err := encode(want)
	if err != nil {
		return "", err
	}
	if have == nil {
		_, absent, err := apply.IfAbsent(ctx, w.client, u)
		if err != nil {
			return "", fmt.Errorf("making a role: %w", err)
		}
		if !absent {
			return "", outdated(want.Name)
		}
		return apply.Created, nil
	}
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(want.GroupVersionKind())
	err = w.live.Get(ctx, client.ObjectKeyFromObject(want), live)
	if client.IgnoreNotFound(err) != nil {
		return "", fmt.Errorf("reading ClusterRole %s: %w", want.Name, err)
	}
	if live.GetUID() != have.UID {
		return "", outdated(want.Name)
	}
	_, result, err := apply.Over(ctx, w.client, u, live)
	if err != nil {
		return "", fmt.Errorf("changing a role: %w", err)
	}
	return result, nil
}

func outdated(name string) error {
	return apierrors.NewConflict(rbacv1.Resource("clusterroles"), name, errOutdated)
}

var errOutdated = errors.New("it has come, or become another one, since it was looked at")

// encode turns a role into what is sent to apply. Rules that are not there are
// another manager's to set; those that are there and none are to be none.
func encode(role *rbacv1.ClusterRole) (*unstructured.Unstructured, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(role)
	if err != nil {
		return nil, fmt.Errorf("encoding ClusterRole %s: %w", role.Name, err)
	}
	if role.Rules == nil {
		delete(content, "rules")
	}
	unstructured.RemoveNestedField(content, "metadata", "creationTimestamp")
	return &unstructured.Unstructured{Object: content}, nil
}

// get returns a cluster role as the cache has it; nil for one that is not there.
func (w roleWriter) get(ctx context.Context, name string) (*rbacv1.ClusterRole, error) {
	have := &rbacv1.ClusterRole{}
	err := w.client.Get(ctx, client.ObjectKey{Name: name}, have, readOnly)
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // Absence is an answer here, and documented.
	}
	if err != nil {
		return nil, fmt.Errorf("getting ClusterRole %s: %w", name, err)
	}
	return have, nil
}

// remove deletes the very role that was seen, not a later one of its name.
func (w roleWriter) remove(ctx context.Context, role *rbacv1.ClusterRole) error {
	target := &metav1.PartialObjectMetadata{}
	target.SetGroupVersionKind(rbacv1.SchemeGroupVersion.WithKind("ClusterRole"))
	target.SetName(role.Name)
	err := w.client.Delete(ctx, target, client.Preconditions{UID: new(role.UID)})
	// A conflict is a role that is another one by now.
	if client.IgnoreNotFound(err) != nil && !apierrors.IsConflict(err) {
		return fmt.Errorf("deleting ClusterRole %s: %w", role.Name, err)
	}
	return nil
}
