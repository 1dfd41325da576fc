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

// kindOfVersions is ClusterServiceVersion, with its group and version.
func kindOfVersions() schema.GroupVersionKind {
	return operatorsv1alpha1.SchemeGroupVersion.WithKind(operatorsv1alpha1.ClusterServiceVersionKind)
}

// owner is the ClusterServiceVersion that objects are applied for.
type owner struct {
	namespace, name string
	// pkg is its package, empty where it does not say so, and replaces the version
	// that it takes over from.
	pkg, replaces string
	reference     metav1.OwnerReference
}

// ownerOf reads a ClusterServiceVersion as the owner of what is applied.
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

// owner gives the version by which objects are owned. It is read from the API
// server once in a pass: a version that was deleted and made again has another UID,
// and objects tied to the old one would be garbage collected.
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

// readVersion reads a version as it is at this moment. One that is being deleted
// counts as gone: what it would own from now on could escape its finalizer.
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

// standInError says that a copy has the name of the version that a plan installs. A copy
// owns nothing and goes with its original, yet it is not the plan's to replace: with it go
// the rights in this namespace of an operator that runs elsewhere.
type standInError struct{ namespace, csv, from string }

// Error says who has the name and how the plan goes on.
func (e *standInError) Error() string {
	return fmt.Sprintf("ClusterServiceVersion %s/%s is only a copy: the operator is installed in namespace %s and serves this one; uninstall it there, or take this namespace out of the targets of its OperatorGroup, or delete the Subscription here",
		e.namespace, e.csv, e.from)
}

// Is says what the error amounts to: the version is not there, and what has its name is
// somebody else's.
func (e *standInError) Is(target error) bool { return target == errOwnerGone || target == errForeign }

// confirmOwners looks again whether the versions are there for which this pass
// applied objects outside the namespace. No garbage collection reaches those, only
// the finalizer of their owner, which may have looked for such objects already: what
// was applied for one that went is taken back.
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
		// Whatever is wrong, it is not known that the object is somebody's.
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

// still says whether the version that was the owner in this pass is there.
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

// takeBack deletes the cluster-scoped object of a step if it belongs to its version.
func (e *execution) takeBack(ctx context.Context, s *operatorsv1alpha1.Step) error {
	for range attempts {
		if err := e.takeBackAsRead(ctx, s); !apierrors.IsConflict(err) {
			return err
		}
	}
	return nil
}

// takeBackAsRead does that once. It gives a conflict when the object is another one by now, or
// has been changed, maybe by a version that has taken it over.
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

// ignoreAbsent drops an error that says that there is no such object, or
// another one by now.
func ignoreAbsent(err error) error {
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) || apimeta.IsNoMatchError(err) {
		return nil
	}
	return err
}
