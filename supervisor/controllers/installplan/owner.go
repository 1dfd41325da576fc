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
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/plan"
)

// kindOfVersions returns the GroupVersionKind of ClusterServiceVersion.
func kindOfVersions() schema.GroupVersionKind {
	return operatorsv1alpha1.SchemeGroupVersion.WithKind(operatorsv1alpha1.ClusterServiceVersionKind)
}

// owner is the ClusterServiceVersion that owns the applied objects.
type owner struct {
	namespace, name string
	// pkg is its package, empty where it states none. replaces is the version that it replaces.
	pkg, replaces string
	reference     metav1.OwnerReference
}

// ownerOf returns a ClusterServiceVersion as an owner.
func ownerOf(csv *unstructured.Unstructured) *owner {
	replaces, _, _ := unstructured.NestedString(csv.Object, "spec", "replaces")
	gvk := kindOfVersions()
	return &owner{
		namespace: csv.GetNamespace(), name: csv.GetName(), pkg: plan.PackageOf(csv), replaces: replaces,
		reference: metav1.OwnerReference{
			APIVersion: gvk.GroupVersion().String(), Kind: gvk.Kind, Name: csv.GetName(), UID: csv.GetUID(),
			Controller: new(false), BlockOwnerDeletion: new(false),
		},
	}
}

// owner returns the version that owns the objects of csv. It reads the version from the API server
// once in a pass. A recreated version has another UID, and objects with the old UID would be
// garbage collected.
func (e *execution) owner(ctx context.Context, csv string) (*owner, error) {
	if known, ok := e.owners[csv]; ok {
		return known, nil
	}
	live, err := e.readVersion(ctx, csv)
	if err != nil {
		return nil, err
	}
	e.owners[csv] = ownerOf(live)
	return e.owners[csv], nil
}

// readVersion reads a version from the API server. It returns errOwnerGone for a version that is
// being deleted: its finalizer may miss objects that are created now.
func (e *execution) readVersion(ctx context.Context, csv string) (*unstructured.Unstructured, error) {
	live, err := e.read(ctx, kindOfVersions(), client.ObjectKey{Namespace: e.namespace, Name: csv})
	switch {
	case err != nil:
		return nil, err
	case live == nil:
		return nil, fmt.Errorf("%w: %s was deleted before its plan was done; starting over", errOwnerGone, csv)
	case live.GetDeletionTimestamp() != nil:
		return nil, fmt.Errorf("%w: %s is being deleted before its plan was done; starting over", errOwnerGone, csv)
	case live.GetLabels()[operatorsv1alpha1.CopiedLabelKey] != "":
		return nil, &standInError{namespace: e.namespace, csv: csv, from: live.GetLabels()[operatorsv1alpha1.CopiedLabelKey]}
	}
	return live, nil
}

// standInError reports that a copied version has the name of the version that a plan installs. A
// copy owns nothing and is deleted with its original. The plan must not replace it: the rights of
// an operator elsewhere depend on it.
type standInError struct{ namespace, csv, from string }

// Error states which namespace has the original, and how the plan continues.
func (e *standInError) Error() string {
	return fmt.Sprintf("ClusterServiceVersion %s/%s is only a copy: the operator is installed in namespace %s and serves this one; uninstall it there, or take this namespace out of the targets of its OperatorGroup, or delete the Subscription here",
		e.namespace, e.csv, e.from)
}

// Is reports true for errOwnerGone, as the version does not exist, and for errForeign, as another
// operator uses its name.
func (e *standInError) Is(target error) bool { return target == errOwnerGone || target == errForeign }

// confirmOwners checks that the versions still exist for which this pass applied cluster-scoped
// objects. Garbage collection does not reach such objects. Only the finalizer of their owner
// deletes them, and it may have searched already. Objects of a deleted version are therefore
// deleted here.
func (e *execution) confirmOwners(ctx context.Context, steps []*operatorsv1alpha1.Step) *stepError {
	asked := map[string]error{}
	var failure *stepError
	for _, s := range e.outside {
		err, known := asked[s.Resolving]
		if !known {
			err = e.still(ctx, s.Resolving)
			asked[s.Resolving] = err
		}
		if err == nil {
			continue
		}
		// After any error, the owner of the object is unknown.
		s.Status = operatorsv1alpha1.StepStatusUnknown
		if errors.Is(err, errOwnerGone) {
			if left := e.takeBack(ctx, s); left != nil {
				err = fmt.Errorf("%w; %w", err, left)
			}
			startOver(steps, s.Resolving)
		}
		if failure == nil {
			failure = &stepError{step: s, err: err}
		}
	}
	return failure
}

// still returns an error if the version that was the owner in this pass is gone or recreated.
func (e *execution) still(ctx context.Context, csv string) error {
	live, err := e.readVersion(ctx, csv)
	if err != nil {
		return err
	}
	if was := e.owners[csv]; was != nil && was.reference.UID != live.GetUID() {
		return fmt.Errorf("%w: %s was deleted and made again before its plan was done; starting over", errOwnerGone, csv)
	}
	return nil
}

// takeBack deletes the cluster-scoped object of a step if the object belongs to its version.
func (e *execution) takeBack(ctx context.Context, s *operatorsv1alpha1.Step) error {
	for range attempts {
		if err := e.takeBackAsRead(ctx, s); !apierrors.IsConflict(err) {
			return err
		}
	}
	return nil
}

// takeBackAsRead reads the object and deletes it, once. It returns a conflict when the object was
// replaced or changed since the read, for example by another version.
func (e *execution) takeBackAsRead(ctx context.Context, s *operatorsv1alpha1.Step) error {
	kind := schema.GroupVersionKind{Group: s.Resource.Group, Version: s.Resource.Version, Kind: s.Resource.Kind}
	live, err := e.read(ctx, kind, client.ObjectKey{Name: s.Resource.Name})
	if err != nil || live == nil {
		return ignoreAbsent(err)
	}
	for key, value := range plan.OwnerLabels(s.Resolving, e.namespace) {
		if live.GetLabels()[key] != value {
			return nil
		}
	}
	err = e.client.Delete(ctx, live, client.Preconditions{UID: new(live.GetUID()), ResourceVersion: new(live.GetResourceVersion())})
	if err == nil || apierrors.IsNotFound(err) {
		return nil
	}
	return fmt.Errorf("taking back %s: %w", describe(live), err)
}

// ignoreAbsent drops an error that reports that the object does not exist or is another one.
func ignoreAbsent(err error) error {
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) || apimeta.IsNoMatchError(err) {
		return nil
	}
	return err
}
