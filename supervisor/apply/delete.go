package apply

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Live returns the live counterpart of an object; nil if there is none.
func Live(ctx context.Context, from client.Reader, want *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(want.GroupVersionKind())
	err := from.Get(ctx, client.ObjectKeyFromObject(want), live)
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // absence is documented
	}
	if err != nil {
		return nil, fmt.Errorf("getting %s %s: %w", want.GetKind(), client.ObjectKeyFromObject(want), err)
	}
	return live, nil
}

// Delete deletes an object, and its dependents in the background. It returns a conflict for an object that
// has changed since it was read, and no error for one that does not exist. Options may set other preconditions.
func Delete(ctx context.Context, c client.Writer, obj client.Object, options ...client.DeleteOption) error {
	options = append([]client.DeleteOption{client.PropagationPolicy(metav1.DeletePropagationBackground)}, options...)
	err := DeleteIf(ctx, c, obj, SameVersion(obj), options...)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting %s %s: %w", obj.GetObjectKind().GroupVersionKind().Kind, obj.GetName(), err)
	}
	return nil
}

// DeleteIf deletes an object under preconditions. It returns the error of the client, also for an object that does
// not exist.
func DeleteIf(ctx context.Context, c client.Writer, obj client.Object, only client.Preconditions, options ...client.DeleteOption) error {
	return c.Delete(ctx, obj, append([]client.DeleteOption{only}, options...)...)
}

// SameUID returns the precondition under which an object is deleted only if it was not recreated.
func SameUID(obj client.Object) client.Preconditions {
	return client.Preconditions{UID: new(obj.GetUID())}
}

// SameVersion returns the preconditions under which an object is deleted only if it has not changed since it was
// read. An object without a resource version was not read; only its UID counts.
func SameVersion(obj client.Object) client.Preconditions {
	p := SameUID(obj)
	if version := obj.GetResourceVersion(); version != "" {
		p.ResourceVersion = &version
	}
	return p
}
