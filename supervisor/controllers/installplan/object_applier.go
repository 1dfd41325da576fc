package installplan

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/apiserver/refusal"
	"github.com/chandlery/chandlery/supervisor/apply"
	"github.com/chandlery/chandlery/supervisor/plansteps"
)

// maxAttempts is the number of tries of a write that is based on a read, when another client writes
// between the two.
const maxAttempts = 5

// errChanged reports that an object changed between reading and writing it.
var errChanged = errors.New("another client changed it at the same time")

// objectApplier applies all objects of bundles except CustomResourceDefinitions.
type objectApplier struct {
	observer *observer
	// writer has the permissions of the account that the OperatorGroup names, or else those of own.
	writer client.Client
	// own has the permissions of the supervisor.
	own      client.Client
	reporter reporter
}

// apply creates or updates an object of a bundle. Creating takes one request. Before an update, the
// object is read to check its owner and to keep fields of other clients.
func (a *objectApplier) apply(ctx context.Context, u *unstructured.Unstructured, owner *owner) (apply.Result, error) {
	var err error
	for range maxAttempts {
		_, absent, refused := apply.CreateIfAbsent(ctx, a.writer, u)
		if absent {
			return apply.Created, nil
		}
		if refused != nil && !apierrors.IsForbidden(refused) && !apierrors.IsInvalid(refused) {
			return "", refused
		}
		live, failure := a.observer.get(ctx, u.GroupVersionKind(), client.ObjectKeyFromObject(u))
		if failure != nil {
			return "", failure
		}
		if live == nil && refused != nil {
			return "", refused
		}
		// An object that must not be created may exist, and an update of it may be allowed.
		var result apply.Result
		if result, err = a.update(ctx, u, live, owner); err == nil || !errors.Is(err, errChanged) {
			return result, err
		}
	}
	return "", err
}

// addFinalizer adds the finalizer of the clean-up to an owner that lacks it. Only the clean-up deletes
// cluster-scoped objects, and another client may delete a version that it has just created.
func (a *objectApplier) addFinalizer(ctx context.Context, owner *owner) error {
	if owner.hasFinalizer {
		return nil
	}
	var err error
	for range maxAttempts {
		live, failure := a.observer.version(ctx, owner.name)
		if failure != nil {
			return failure
		}
		changed := live.DeepCopy()
		if !controllerutil.AddFinalizer(changed, api.FinalizerCleanup) {
			return nil
		}
		if err = apply.Patch(ctx, a.own, changed, apply.MergeFromLocked(live)); !apierrors.IsConflict(err) {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("adding the finalizer of ClusterServiceVersion %s/%s: %w", owner.namespace, owner.name, err)
	}
	return nil
}

// update applies an object over the live one.
func (a *objectApplier) update(ctx context.Context, u, live *unstructured.Unstructured, owner *owner) (apply.Result, error) {
	if err := checkExists(u, live); err != nil {
		return "", err
	}
	ours, err := a.checkOwners(ctx, u, live, owner)
	if err != nil {
		return "", err
	}
	wanted := merged(u, live)
	if roleRefChanges(wanted, live) {
		return a.recreate(ctx, u, live, ours, "its roleRef cannot be changed")
	}
	_, result, err := apply.Update(ctx, a.writer, wanted, live)
	switch {
	case apierrors.IsConflict(err):
		return "", fmt.Errorf("%w: %w", errChanged, err)
	case refusal.Immutable(err) && replaceable(live):
		return a.recreate(ctx, u, live, ours, err.Error())
	}
	if err == nil && owner.name != "" && isUnowned(live) {
		a.reporter.adopted(describe(live), owner.name)
	}
	return result, err
}

// checkOwners returns an error if an existing object must not be changed for a version. ours reports
// whether the object belongs to the operator of that version in this namespace. It is false without
// an error if no operator owns the object, or if the same operator in another namespace owns it. A
// ServiceAccount may have several operators as owners: each adds to it, and none removes anything. The manifest u
// may name further owners.
func (a *objectApplier) checkOwners(ctx context.Context, u, live *unstructured.Unstructured, owner *owner) (ours bool, err error) {
	shared := live.GetKind() == "ServiceAccount"
	for _, c := range ownerKeys(live) {
		if c.Namespace == owner.namespace && c.Name == owner.name || apply.HasOwner(u, c.uid) {
			ours = true
			continue
		}
		existing, err := a.observer.existingOwner(ctx, c)
		if err != nil {
			return false, err
		}
		switch {
		case existing == nil:
		case sameOperator(owner, existing):
			ours = ours || existing.GetNamespace() == owner.namespace
		case !shared:
			return false, fmt.Errorf("%w: %s belongs to ClusterServiceVersion %s of another operator; remove one of the two operators, or %s",
				errOtherOwner, describe(live), c.NamespacedName, owner.otherName())
		}
	}
	if shared {
		return ours, nil
	}
	return ours, checkController(live, owner)
}

// checkController returns an error if a controller other than a version owns an object.
func checkController(live *unstructured.Unstructured, owner *owner) error {
	if ref := metav1.GetControllerOf(live); ref != nil && ref.Kind != operatorsv1alpha1.ClusterServiceVersionKind {
		return fmt.Errorf("%w: %s is controlled by %s %s; delete that object, or %s",
			errOtherOwner, describe(live), ref.Kind, ref.Name, owner.otherName())
	}
	return nil
}

// recreate deletes an object that cannot be changed as wanted, and creates it again. It returns an
// error if the object is not this operator's own.
func (a *objectApplier) recreate(ctx context.Context, u, live *unstructured.Unstructured, ours bool, why string) (apply.Result, error) {
	name := describe(live)
	if !ours {
		return "", fmt.Errorf("%w: %s, and %s was not created for this operator; if nothing else needs it, delete it; the supervisor then recreates it", errOtherOwner, why, name)
	}
	// The preconditions exclude another object of that name.
	err := apply.DeleteIf(ctx, a.writer, live, apply.SameVersion(live))
	switch {
	case apierrors.IsConflict(err):
		return "", fmt.Errorf("%w: %w", errChanged, err)
	case client.IgnoreNotFound(err) != nil:
		return "", fmt.Errorf("deleting %s to recreate it: %w", name, err)
	}
	if _, absent, err := apply.CreateIfAbsent(ctx, a.writer, u); err != nil || absent {
		return apply.Updated, err
	}
	return "", fmt.Errorf("%s was recreated: %w", name, errChanged)
}

// deleteOwned deletes the cluster-scoped object, of some kind, of a step if the object belongs to its version.
func (a *objectApplier) deleteOwned(ctx context.Context, s *operatorsv1alpha1.Step, kind schema.GroupVersionKind) error {
	for range maxAttempts {
		if err := a.deleteOwnedOnce(ctx, s, kind); !apierrors.IsConflict(err) {
			return err
		}
	}
	return nil
}

// deleteOwnedOnce reads the object and deletes it, once. It returns a conflict when the object was
// replaced or changed since the read, for example by another version.
func (a *objectApplier) deleteOwnedOnce(ctx context.Context, s *operatorsv1alpha1.Step, kind schema.GroupVersionKind) error {
	live, err := a.observer.get(ctx, kind, client.ObjectKey{Name: s.Resource.Name})
	if err != nil || live == nil {
		return ignoreAbsent(err)
	}
	for key, value := range plansteps.OwnerLabels(s.Resolving, a.observer.namespace) {
		if live.GetLabels()[key] != value {
			return nil
		}
	}
	err = apply.DeleteIf(ctx, a.own, live, apply.SameVersion(live))
	if err == nil || apierrors.IsNotFound(err) {
		return nil
	}
	return fmt.Errorf("taking back %s: %w", describe(live), err)
}

// checkExists returns an error for an object that is deleted, or being deleted.
func checkExists(u, live *unstructured.Unstructured) error {
	switch {
	case live == nil:
		return fmt.Errorf("%s %s was deleted: %w", u.GetKind(), u.GetName(), errChanged)
	case live.GetDeletionTimestamp() != nil:
		return fmt.Errorf("%s %s is being deleted; the supervisor recreates it when its finalizers are removed (%s)",
			live.GetKind(), live.GetName(), strings.Join(live.GetFinalizers(), ", "))
	}
	return nil
}

// isUnowned reports whether an object belongs to no operator and no manager of operators.
func isUnowned(live *unstructured.Unstructured) bool {
	return len(ownerKeys(live)) == 0 && live.GetLabels()[api.LabelManaged] == ""
}

// merged returns the object to apply over the live one. It keeps the fields of the live object that
// other clients set and an update would remove.
func merged(u, live *unstructured.Unstructured) *unstructured.Unstructured {
	wanted := u.DeepCopy()
	switch u.GetKind() {
	case "ServiceAccount":
		// The API replaces this list as a whole; clusters and users add to it.
		keepPullSecrets(wanted, live)
	case "Service":
		// The address of a Service never changes, whatever the bundle has.
		if has, _, _ := unstructured.NestedString(live.Object, "spec", "clusterIP"); has != "" {
			keepField(wanted, live, "clusterIP")
			keepField(wanted, live, "clusterIPs")
		}
	}
	return wanted
}

// keepField copies a field of spec from the live object.
func keepField(wanted, live *unstructured.Unstructured, name string) {
	unstructured.RemoveNestedField(wanted.Object, "spec", name)
	if has, found, err := unstructured.NestedFieldCopy(live.Object, "spec", name); err == nil && found {
		_ = unstructured.SetNestedField(wanted.Object, has, "spec", name) // the API server refuses a spec that is not an object
	}
}

func keepPullSecrets(wanted, live *unstructured.Unstructured) {
	list, found, err := unstructured.NestedSlice(wanted.Object, "imagePullSecrets")
	if err != nil || !found {
		return
	}
	existing, _, _ := unstructured.NestedSlice(live.Object, "imagePullSecrets")
	named := func(list []any, name any) bool {
		return slices.ContainsFunc(list, func(o any) bool { m, ok := o.(map[string]any); return ok && m["name"] == name })
	}
	for _, o := range existing {
		if m, ok := o.(map[string]any); ok && !named(list, m["name"]) {
			list = append(list, m)
		}
	}
	wanted.Object["imagePullSecrets"] = list
}

// roleRefChanges reports whether the wanted binding has another role.
func roleRefChanges(wanted, live *unstructured.Unstructured) bool {
	if !strings.HasSuffix(wanted.GetKind(), "RoleBinding") {
		return false
	}
	for _, field := range []string{"apiGroup", "kind", "name"} {
		before, _, _ := unstructured.NestedString(live.Object, "roleRef", field)
		after, _, _ := unstructured.NestedString(wanted.Object, "roleRef", field)
		if before != after && (after != "" || field != "apiGroup") {
			return true
		}
	}
	return false
}

// replaceable reports whether an immutable object may be deleted and recreated: only its content is
// lost.
func replaceable(live *unstructured.Unstructured) bool {
	return slices.Contains([]string{"ConfigMap", "PriorityClass", "RoleBinding", "ClusterRoleBinding"}, live.GetKind())
}

// describe returns the kind, namespace and name of an object.
func describe(u *unstructured.Unstructured) string {
	if u.GetNamespace() == "" {
		return u.GetKind() + " " + u.GetName()
	}
	return u.GetKind() + " " + u.GetNamespace() + "/" + u.GetName()
}
