// Package apply is the only writer of the supervisor. test/depcheck finds writes elsewhere.
//
// CreateIfAbsent, Update and Adopt write manifests, whose content the supervisor does not know in advance, as a
// client would: with create and update. Server-side apply is not used for them, for three reasons. It refuses
// fields that the cluster does not know. It refuses duplicate entries, which a create drops or accepts with a
// warning. It requires the permission to patch.
//
// A field that one manifest sets and the next one lacks is removed, and fields that others set remain. Package
// merge describes the rules. It is safe to repeat a write that a crash interrupted.
//
// The package also has the back-off of the controllers.
package apply

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/apply/merge"
)

// Result is the result of writing an object.
type Result string

// The results of a write.
const (
	// Created means that the object did not exist before.
	Created Result = "Created"
	// Updated means that the object existed and differed.
	Updated Result = "Updated"
	// Unchanged means that the object already was as wanted.
	Unchanged Result = "Unchanged"
)

// CreateIfAbsent creates an object unless one of its name exists, in one request either way. absent reports
// whether none existed; made is then the new object. An existing object is not changed.
func CreateIfAbsent(ctx context.Context, c client.Client, u *unstructured.Unstructured) (made *unstructured.Unstructured, absent bool, err error) {
	made = manifest(u)
	err = c.Create(ctx, made, client.FieldOwner(api.ManifestFieldManager), client.FieldValidation(metav1.FieldValidationWarn))
	switch {
	case apierrors.IsAlreadyExists(err):
		return nil, false, nil
	case err != nil:
		return nil, false, fmt.Errorf("creating %s: %w", describe(u), err)
	default:
		return made, true, nil
	}
}

// Update brings an object that was read, with its managed fields, to the state that u describes, and returns the
// result. It takes over fields that another manager set. It leaves fields that u does not mention. The error is
// a conflict if the object has changed since it was read, since decisions may depend on what was read. It sends
// nothing if nothing differs.
//
// References to ClusterServiceVersions from an earlier write are kept beside the new ones. Two versions share
// an object while one of them replaces the other, and the object must survive the deletion of either.
//
// In an operator's object, the fields set by the manager that installed it before count as set by this package.
// They are removed if u does not mention them.
func Update(ctx context.Context, c client.Client, u, live *unstructured.Unstructured) (*unstructured.Unstructured, Result, error) {
	owned, err := ownership(live, u.GetAPIVersion())
	if err != nil {
		return nil, "", err
	}
	wanted := manifest(u)
	keepOwners(wanted, live, owned.Mine)
	return update(ctx, c, wanted, live, owned)
}

// Differs reports whether Update would change an object that has been read.
func Differs(u, live *unstructured.Unstructured) (bool, error) {
	owned, err := ownership(live, u.GetAPIVersion())
	if err != nil {
		return false, err
	}
	wanted := manifest(u)
	keepOwners(wanted, live, owned.Mine)
	return !merge.Same(merge.Objects(live.Object, wanted.Object, owned), live.Object), nil
}

// MetadataPatch is the annotations and labels that a writer adds to an object, and the annotations that it
// removes.
type MetadataPatch struct {
	Annotations, Labels map[string]string
	Remove              []string
}

// PatchMetadata adds and removes annotations and labels of an object, and changes nothing else. Each key belongs
// to the writer. Thus no change by others is lost, and repeating the call is harmless. The error is a conflict if
// the object was recreated after it was read, since the new object was not checked. If annotations are removed, the
// error is also a conflict if the object has changed since. Their writer may have returned.
func PatchMetadata(ctx context.Context, c client.Client, live *unstructured.Unstructured, keys MetadataPatch) error {
	changes, metadata := map[string]any{}, map[string]any{}
	for key, value := range keys.Annotations {
		changes[key] = value
	}
	for _, key := range keys.Remove {
		changes[key], metadata["resourceVersion"] = nil, live.GetResourceVersion()
	}
	metadata["annotations"] = changes
	if len(keys.Labels) > 0 {
		metadata["labels"] = keys.Labels
	}
	return mergeMetadata(ctx, c, live, metadata)
}

// RemoveAnnotations removes annotations from an object, and nothing else. Their writer must not return. Thus no
// change by others is lost, and repeating the call is harmless. The error is a conflict if the object was
// recreated after it was read.
func RemoveAnnotations(ctx context.Context, c client.Client, live *unstructured.Unstructured, keys []string) error {
	return RemoveMetadata(ctx, c, live, MetadataKeys{Annotations: keys})
}

// MetadataKeys are the keys of labels and annotations, and finalizers.
type MetadataKeys struct{ Labels, Annotations, Finalizers []string }

// Empty reports whether there are no keys.
func (k MetadataKeys) Empty() bool { return len(k.Labels)+len(k.Annotations)+len(k.Finalizers) == 0 }

// RemoveMetadata removes labels and annotations from an object, as RemoveAnnotations does. If it removes finalizers, the
// error is also a conflict if the object has changed since: a patch replaces the whole list.
func RemoveMetadata(ctx context.Context, c client.Client, live *unstructured.Unstructured, keys MetadataKeys) error {
	metadata := map[string]any{}
	for field, keys := range map[string][]string{"labels": keys.Labels, "annotations": keys.Annotations} {
		changes := map[string]any{}
		for _, key := range keys {
			changes[key] = nil
		}
		if len(changes) > 0 {
			metadata[field] = changes
		}
	}
	if len(keys.Finalizers) > 0 {
		kept := slices.DeleteFunc(slices.Clone(live.GetFinalizers()), func(f string) bool { return slices.Contains(keys.Finalizers, f) })
		metadata["finalizers"], metadata["resourceVersion"] = kept, live.GetResourceVersion()
	}
	return mergeMetadata(ctx, c, live, metadata)
}

// mergeMetadata merges metadata into that of an object, which must still have the UID of live.
func mergeMetadata(ctx context.Context, c client.Client, live *unstructured.Unstructured, metadata map[string]any) error {
	metadata["uid"] = live.GetUID()
	target := &metav1.PartialObjectMetadata{}
	target.SetGroupVersionKind(live.GroupVersionKind())
	target.SetNamespace(live.GetNamespace())
	target.SetName(live.GetName())
	err := Patch(ctx, c, target, MergePatch{"metadata": metadata}, client.FieldOwner(api.ManifestFieldManager))
	if recreated(err) {
		err = apierrors.NewConflict(schema.GroupResource{Group: live.GroupVersionKind().Group, Resource: live.GetKind()}, live.GetName(), err)
	}
	if err != nil {
		return fmt.Errorf("annotating %s: %w", describe(live), err)
	}
	return nil
}

// recreated reports whether the API server refused a patch because its object has another UID. A patch has no
// preconditions, so the UID in it counts as a change of an immutable field.
func recreated(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || !apierrors.IsInvalid(err) || status.Status().Details == nil {
		return false
	}
	return slices.ContainsFunc(status.Status().Details.Causes, func(c metav1.StatusCause) bool { return c.Field == "metadata.uid" })
}

// Adopt does the same as Update for an object that belongs to one version at a time. It removes the owner that
// an earlier write set, unless u has it too.
func Adopt(ctx context.Context, c client.Client, u, live *unstructured.Unstructured) (Result, error) {
	owned, err := ownership(live, u.GetAPIVersion())
	if err != nil {
		return "", err
	}
	_, result, err := update(ctx, c, manifest(u), live, owned)
	return result, err
}

func update(ctx context.Context, c client.Client, wanted, live *unstructured.Unstructured, owned merge.Owned) (*unstructured.Unstructured, Result, error) {
	next := &unstructured.Unstructured{Object: merge.Objects(live.Object, wanted.Object, owned)}
	if merge.Same(next.Object, live.Object) {
		return live.DeepCopy(), Unchanged, nil
	}
	next = next.DeepCopy()
	// The API server preserves the managed fields.
	next.SetManagedFields(nil)
	if err := c.Update(ctx, next, client.FieldOwner(api.ManifestFieldManager), client.FieldValidation(metav1.FieldValidationWarn)); err != nil {
		return nil, "", fmt.Errorf("updating %s: %w", describe(live), err)
	}
	if next.GetResourceVersion() == live.GetResourceVersion() {
		return next, Unchanged, nil
	}
	return next, Updated, nil
}

// manifest returns a copy of an object without the fields that only the API server sets. Manifests that were
// exported from a cluster still have them.
func manifest(u *unstructured.Unstructured) *unstructured.Unstructured {
	out := u.DeepCopy()
	delete(out.Object, "status")
	for _, field := range []string{
		"uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp",
		"deletionGracePeriodSeconds", "managedFields", "selfLink",
	} {
		unstructured.RemoveNestedField(out.Object, "metadata", field)
	}
	return out
}

// describe returns the name of an object for errors in the form of kubectl: kind, namespace and name.
func describe(u *unstructured.Unstructured) string {
	if u.GetNamespace() == "" {
		return u.GetKind() + " " + u.GetName()
	}
	return u.GetKind() + " " + u.GetNamespace() + "/" + u.GetName()
}
