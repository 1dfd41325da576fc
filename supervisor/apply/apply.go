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
// Owner references to live ClusterServiceVersions that the object already has
// are kept beside the new ones: two versions share an object while one of them
// takes over from the other, and the object has to survive whichever goes.
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
		wanted.SetOwnerReferences(joined(live.GetOwnerReferences(), wanted.GetOwnerReferences()))
	}
	if err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(wanted), client.FieldOwner(FieldManager), client.ForceOwnership); err != nil {
		return "", fmt.Errorf("applying %s: %w", describe(u), err)
	}
	switch {
	case !exists:
		return Created, nil
	case wanted.GetResourceVersion() == live.GetResourceVersion():
		return Unchanged, nil
	default:
		return Updated, nil
	}
}

// Create makes an object that must not be touched when it is already there.
func Create(ctx context.Context, c client.Client, u *unstructured.Unstructured) (Result, error) {
	err := c.Create(ctx, u.DeepCopy(), client.FieldOwner(FieldManager))
	switch {
	case apierrors.IsAlreadyExists(err):
		return Unchanged, nil
	case err != nil:
		return "", fmt.Errorf("creating %s: %w", describe(u), err)
	default:
		return Created, nil
	}
}

// joined adds references to ClusterServiceVersions that an object has to those
// it is to have. References to other kinds are somebody else's: server-side
// apply leaves them where they are.
func joined(existing, wanted []metav1.OwnerReference) []metav1.OwnerReference {
	for _, ref := range existing {
		if ref.Kind != "ClusterServiceVersion" || hasUID(wanted, ref) {
			continue
		}
		wanted = append(wanted, ref)
	}
	return wanted
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
