// Package apply writes objects to the cluster as a client would, with create and update,
// and says what that changed.
//
// It is the only place where the supervisor writes objects whose content it
// does not know beforehand. Server-side apply is not used for them: it refuses fields that
// the cluster does not know and entries that are there twice, which a create drops or takes
// with a warning, and it needs the right to patch. What one manifest sets and the
// next lacks goes all the same, and what others set stays: package merge says how. A write
// that was cut off by a crash is harmless to repeat.
package apply

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/apply/merge"
)

// Result is what writing an object came to.
type Result string

// The results of a write.
const (
	// Created says that the object was not there before.
	Created Result = "Created"
	// Updated says that the object was there and differed.
	Updated Result = "Updated"
	// Unchanged says that the object already was as wanted.
	Unchanged Result = "Unchanged"
)

// IfAbsent makes an object unless there is one of its name, in one request either
// way. absent says whether there was none; made is then the new object. One that
// is there is left as it is.
func IfAbsent(ctx context.Context, c client.Client, u *unstructured.Unstructured) (made *unstructured.Unstructured, absent bool, err error) {
	made, err = create(ctx, c, u)
	switch {
	case apierrors.IsAlreadyExists(err):
		return nil, false, nil
	case err != nil:
		return nil, false, err
	default:
		return made, true, nil
	}
}

// Create makes an object that must not be touched when it is already there. made
// is what the API server made of it; nil when it was there.
func Create(ctx context.Context, c client.Client, u *unstructured.Unstructured) (made *unstructured.Unstructured, result Result, err error) {
	made, absent, err := IfAbsent(ctx, c, u)
	switch {
	case err != nil:
		return nil, "", err
	case !absent:
		return nil, Unchanged, nil
	default:
		return made, Created, nil
	}
}

// Over brings an object that has been read, with its managed fields, to the state that u
// describes, and returns what became of it. Fields that another manager set are taken over;
// fields that u does not mention are left alone. A conflict is the error if the object has
// changed since, so that what was decided by looking at it still holds. Nothing is sent where
// nothing differs.
//
// References to ClusterServiceVersions that an earlier write gave the object are kept beside the
// new ones: two versions share an object while one of them takes over from the other, and
// the object has to survive whichever goes.
//
// Of an operator's object, what the manager set that installed it before counts as set by
// this package: it goes if u does not mention it.
func Over(ctx context.Context, c client.Client, u, live *unstructured.Unstructured) (*unstructured.Unstructured, Result, error) {
	owned, err := ownership(live, u.GetAPIVersion())
	if err != nil {
		return nil, "", err
	}
	wanted := manifest(u)
	keepOwners(wanted, live, owned.Mine)
	return update(ctx, c, wanted, live, owned)
}

// Differs reports whether Over would change an object that has been read.
func Differs(u, live *unstructured.Unstructured) (bool, error) {
	owned, err := ownership(live, u.GetAPIVersion())
	if err != nil {
		return false, err
	}
	wanted := manifest(u)
	keepOwners(wanted, live, owned.Mine)
	return !merge.Same(merge.Objects(live.Object, wanted.Object, owned), live.Object), nil
}

// Keys are the annotations and labels that a writer adds to an object, and the annotations that it
// removes.
type Keys struct {
	Annotations, Labels map[string]string
	Remove              []string
}

// Join adds annotations and labels to an object, and nothing else. Each key is the writer's own, so
// that nothing of others is lost, and repeating it is harmless. A conflict is the error if the object has
// been recreated since it was read: the new one was not checked. With annotations to remove, a conflict is
// also the error if the object has changed since: who wrote them may have come back.
func Join(ctx context.Context, c client.Client, live *unstructured.Unstructured, keys Keys) error {
	changes, metadata := map[string]any{}, map[string]any{"labels": keys.Labels, "uid": live.GetUID()}
	for key, value := range keys.Annotations {
		changes[key] = value
	}
	for _, key := range keys.Remove {
		changes[key], metadata["resourceVersion"] = nil, live.GetResourceVersion()
	}
	metadata["annotations"] = changes
	patch, err := json.Marshal(map[string]any{"metadata": metadata})
	if err != nil {
		return fmt.Errorf("encoding the annotations of %s: %w", describe(live), err)
	}
	target := &metav1.PartialObjectMetadata{}
	target.SetGroupVersionKind(live.GroupVersionKind())
	target.SetNamespace(live.GetNamespace())
	target.SetName(live.GetName())
	err = c.Patch(ctx, target, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(api.ManifestFieldManager))
	if recreated(err) {
		err = apierrors.NewConflict(schema.GroupResource{Group: live.GroupVersionKind().Group, Resource: live.GetKind()}, live.GetName(), err)
	}
	if err != nil {
		return fmt.Errorf("annotating %s: %w", describe(live), err)
	}
	return nil
}

// recreated reports whether the API server refused a patch because its object has another UID. A
// patch has no preconditions, so that the UID in it counts as a change of an immutable field.
func recreated(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || !apierrors.IsInvalid(err) || status.Status().Details == nil {
		return false
	}
	return slices.ContainsFunc(status.Status().Details.Causes, func(c metav1.StatusCause) bool { return c.Field == "metadata.uid" })
}

// TakeOver does what Over does to an object that belongs to one version at a time: what
// an earlier write said of its owner goes, unless u says it too.
func TakeOver(ctx context.Context, c client.Client, u, live *unstructured.Unstructured) (Result, error) {
	owned, err := ownership(live, u.GetAPIVersion())
	if err != nil {
		return "", err
	}
	_, result, err := update(ctx, c, manifest(u), live, owned)
	return result, err
}

func create(ctx context.Context, c client.Client, u *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	made := manifest(u)
	if err := c.Create(ctx, made, client.FieldOwner(api.ManifestFieldManager), client.FieldValidation(metav1.FieldValidationWarn)); err != nil {
		return nil, fmt.Errorf("creating %s: %w", describe(u), err)
	}
	return made, nil
}

func update(ctx context.Context, c client.Client, wanted, live *unstructured.Unstructured, owned merge.Owned) (*unstructured.Unstructured, Result, error) {
	next := &unstructured.Unstructured{Object: merge.Objects(live.Object, wanted.Object, owned)}
	if merge.Same(next.Object, live.Object) {
		return live.DeepCopy(), Unchanged, nil
	}
	next = next.DeepCopy()
	// The API server keeps them.
	next.SetManagedFields(nil)
	if err := c.Update(ctx, next, client.FieldOwner(api.ManifestFieldManager), client.FieldValidation(metav1.FieldValidationWarn)); err != nil {
		return nil, "", fmt.Errorf("updating %s: %w", describe(live), err)
	}
	if next.GetResourceVersion() == live.GetResourceVersion() {
		return next, Unchanged, nil
	}
	return next, Updated, nil
}

// manifest is a copy of an object without what only the API server sets, as it is left in
// manifests that were exported from a cluster.
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

// describe names an object in errors the way kubectl would: kind, namespace and
// name.
func describe(u *unstructured.Unstructured) string {
	if u.GetNamespace() == "" {
		return u.GetKind() + " " + u.GetName()
	}
	return u.GetKind() + " " + u.GetNamespace() + "/" + u.GetName()
}
