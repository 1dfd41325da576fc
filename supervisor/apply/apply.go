// Package apply writes objects to the cluster with server-side apply and says
// what that changed.
//
// It is the only place where the supervisor writes objects whose content it
// does not know beforehand. Server-side apply makes a write that was cut off by
// a crash harmless to repeat, and keeps apart what the supervisor set from what
// others set on the same object. See
// https://kubernetes.io/docs/reference/using-api/server-side-apply/.
package apply

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// FieldManager is the name under which the supervisor owns the fields it sets.
const FieldManager = "chandlery-supervisor"

// noVersion is a resource version that no object has: it is the storage's own
// before anything is written to it.
const noVersion = "1"

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

// Object brings an object to the state that u describes, taking over fields
// that another manager holds. Fields that u does not mention are left alone.
//
// References to ClusterServiceVersions that an earlier Object or Over gave it are
// kept beside the new ones: two versions share an object while one of them takes over
// from the other, and the object has to survive whichever goes.
func Object(ctx context.Context, c client.Client, u *unstructured.Unstructured) (Result, error) {
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(u.GroupVersionKind())
	err := c.Get(ctx, client.ObjectKeyFromObject(u), live)
	if client.IgnoreNotFound(err) != nil {
		return "", fmt.Errorf("reading %s: %w", describe(u), err)
	}
	exists := err == nil
	wanted := u.DeepCopy()
	if exists {
		if err := keepOwners(wanted, live); err != nil {
			return "", err
		}
	}
	if err := write(ctx, c, wanted); err != nil {
		return "", err
	}
	if !exists {
		return Created, nil
	}
	return changed(live, wanted), nil
}

// IfAbsent makes an object unless there is one of its name, in one request either
// way. absent says whether there was none; made is then the new object. One that
// is there is left as it is.
func IfAbsent(ctx context.Context, c client.Client, u *unstructured.Unstructured) (made *unstructured.Unstructured, absent bool, err error) {
	made = u.DeepCopy()
	// Creating does not look at the version; changing what is there fails on it.
	made.SetResourceVersion(noVersion)
	err = write(ctx, c, made)
	switch {
	case apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err):
		return nil, false, nil
	case err != nil:
		return nil, false, err
	default:
		return made, true, nil
	}
}

// Over does what Object does to an object that has been read, and gives what
// became of it. A conflict is the error if it has changed since, so that what was
// decided by looking at it still holds.
//
// Of an operator's object, what the manager set that installed it before counts as
// set by Object: it goes if u does not mention it.
func Over(ctx context.Context, c client.Client, u, live *unstructured.Unstructured) (*unstructured.Unstructured, Result, error) {
	mine, err := adopted(ctx, c, u, live)
	if err != nil {
		return nil, "", err
	}
	wanted := u.DeepCopy()
	if err := keepOwners(wanted, mine); err != nil {
		return nil, "", err
	}
	wanted.SetResourceVersion(mine.GetResourceVersion())
	if err := write(ctx, c, wanted); err != nil {
		return nil, "", err
	}
	return wanted, changed(live, wanted), nil
}

func changed(before, after *unstructured.Unstructured) Result {
	if before.GetResourceVersion() == after.GetResourceVersion() {
		return Unchanged
	}
	return Updated
}

// write sends an object, which becomes what the API server made of it.
func write(ctx context.Context, c client.Client, u *unstructured.Unstructured) error {
	if err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), client.FieldOwner(FieldManager), client.ForceOwnership); err != nil {
		return fmt.Errorf("applying %s: %w", describe(u), err)
	}
	return nil
}

// Create makes an object that must not be touched when it is already there. made
// is what the API server made of it; nil when it was there.
func Create(ctx context.Context, c client.Client, u *unstructured.Unstructured) (made *unstructured.Unstructured, result Result, err error) {
	made = u.DeepCopy()
	err = c.Create(ctx, made, client.FieldOwner(FieldManager))
	switch {
	case apierrors.IsAlreadyExists(err):
		return nil, Unchanged, nil
	case err != nil:
		return nil, "", fmt.Errorf("creating %s: %w", describe(u), err)
	default:
		return made, Created, nil
	}
}

// keepOwners adds to what is wanted the references to ClusterServiceVersions that this
// field manager gave an object, which applying without them would take away. Whether
// those versions are still there is the garbage collector's business: it takes away
// references to what is gone. References that others set stay theirs: server-side
// apply leaves them where they are.
func keepOwners(wanted, live *unstructured.Unstructured) error {
	own := ownEntry(live)
	if own == nil {
		return nil
	}
	fields, err := setOf(own)
	if err != nil {
		return fmt.Errorf("reading who manages %s: %w", describe(live), err)
	}
	refs := wanted.GetOwnerReferences()
	for _, ref := range live.GetOwnerReferences() {
		if ref.Kind == kindCSV && fields.Has(pathOf(ref)) && !hasUID(refs, ref) {
			refs = append(refs, ref)
		}
	}
	wanted.SetOwnerReferences(refs)
	return nil
}

func hasUID(refs []metav1.OwnerReference, ref metav1.OwnerReference) bool {
	for _, r := range refs {
		if r.UID == ref.UID {
			return true
		}
	}
	return false
}

// describe names an object in errors the way kubectl would: kind, namespace and
// name.
func describe(u *unstructured.Unstructured) string {
	if u.GetNamespace() == "" {
		return u.GetKind() + " " + u.GetName()
	}
	return u.GetKind() + " " + u.GetNamespace() + "/" + u.GetName()
}
