package installplan

import (
	"context"
	"errors"
	"fmt"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/apply"
	"github.com/chandlery/chandlery/supervisor/plan"
)

// owner gives the reference by which a ClusterServiceVersion owns its objects.
// It is read from the API server: a version that was deleted and made again has
// another UID, and objects tied to the old one would be garbage collected.
func (e *execution) owner(ctx context.Context, csv string) (metav1.OwnerReference, error) {
	if ref, ok := e.owners[csv]; ok {
		return ref, nil
	}
	ref, err := e.readOwner(ctx, csv)
	if err == nil {
		e.owners[csv] = ref
	}
	return ref, err
}

// readOwner gives the same as owner, as it is at this moment. One that is being
// deleted counts as gone: what it would own from now on could escape its
// finalizer.
func (e *execution) readOwner(ctx context.Context, csv string) (metav1.OwnerReference, error) {
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(operatorsv1alpha1.SchemeGroupVersion.WithKind(operatorsv1alpha1.ClusterServiceVersionKind))
	err := e.client.Get(ctx, client.ObjectKey{Namespace: e.namespace, Name: csv}, live)
	if apierrors.IsNotFound(err) {
		return metav1.OwnerReference{}, fmt.Errorf("%w: %s was deleted before its plan was done; starting over", errOwnerGone, csv)
	}
	if err != nil {
		return metav1.OwnerReference{}, fmt.Errorf("reading the ClusterServiceVersion %s that is to own it: %w", csv, err)
	}
	if live.GetDeletionTimestamp() != nil {
		return metav1.OwnerReference{}, fmt.Errorf("%w: %s is being deleted before its plan was done; starting over", errOwnerGone, csv)
	}
	return metav1.OwnerReference{
		APIVersion: live.GetAPIVersion(), Kind: live.GetKind(), Name: live.GetName(), UID: live.GetUID(),
		Controller: new(false), BlockOwnerDeletion: new(false),
	}, nil
}

// applyClusterScoped applies an object that a ClusterServiceVersion owns by its
// labels. No garbage collection reaches it, only the finalizer of its owner,
// which may have looked for such objects already: the owner has to be there
// before and after, and what was applied for one that went is taken back.
func (e *execution) applyClusterScoped(ctx context.Context, u *unstructured.Unstructured, csv string) (apply.Result, error) {
	var result apply.Result
	_, err := e.readOwner(ctx, csv)
	if err == nil {
		result, err = apply.Object(ctx, e.client, u)
	}
	if err == nil {
		_, err = e.readOwner(ctx, csv)
	}
	if !errors.Is(err, errOwnerGone) {
		return result, err
	}
	if failure := e.takeBack(ctx, u, csv); failure != nil {
		return "", fmt.Errorf("%w; %w", err, failure)
	}
	return "", err
}

// takeBack deletes a cluster-scoped object if it belongs to a version.
func (e *execution) takeBack(ctx context.Context, u *unstructured.Unstructured, csv string) error {
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(u.GroupVersionKind())
	if err := e.client.Get(ctx, client.ObjectKeyFromObject(u), live); err != nil {
		return ignoreAbsent(fmt.Errorf("reading %s %s to take it back: %w", u.GetKind(), u.GetName(), err))
	}
	for key, value := range plan.OwnerLabels(csv, e.namespace) {
		if live.GetLabels()[key] != value {
			return nil
		}
	}
	// Another object of that name is not the one whose labels were read.
	err := e.client.Delete(ctx, live, client.Preconditions{UID: new(live.GetUID())})
	if err != nil {
		return ignoreAbsent(fmt.Errorf("taking back %s %s: %w", u.GetKind(), u.GetName(), err))
	}
	return nil
}

// ignoreAbsent drops an error that says that there is no such object, or
// another one by now.
func ignoreAbsent(err error) error {
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) || apimeta.IsNoMatchError(err) {
		return nil
	}
	return err
}
