package installplan

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/apply"
	"github.com/chandlery/chandlery/supervisor/refusal"
)

// attempts is how often a write is tried that is based on what was read, when
// somebody else writes between the two.
const attempts = 5

// object brings an object of a bundle to the state that u describes. One request is
// enough for one that is not there. One that is there is looked at first: whose it
// is, and what of it has to be kept.
func (e *execution) object(ctx context.Context, u *unstructured.Unstructured, owner *owner) (apply.Result, error) {
	var err error
	for range attempts {
		_, absent, refused := apply.IfAbsent(ctx, e.steps, u)
		if absent {
			return apply.Created, nil
		}
		if refused != nil && !apierrors.IsForbidden(refused) && !apierrors.IsInvalid(refused) {
			return "", refused
		}
		live, failure := e.read(ctx, u.GroupVersionKind(), client.ObjectKeyFromObject(u))
		if failure != nil {
			return "", failure
		}
		if live == nil && refused != nil {
			return "", refused
		}
		// What may not be made may be there, and may be changed.
		var result apply.Result
		if result, err = e.over(ctx, u, live, owner); err == nil || !errors.Is(err, errChanged) {
			return result, err
		}
	}
	return "", err
}

// errChanged says that an object changed between reading and writing it.
var errChanged = errors.New("another client changes it at the same time")

// over applies an object over the one that is there.
func (e *execution) over(ctx context.Context, u, live *unstructured.Unstructured, owner *owner) (apply.Result, error) {
	if err := stays(u, live); err != nil {
		return "", err
	}
	ours, err := e.admit(ctx, live, owner)
	if err != nil {
		return "", err
	}
	wanted := reconciled(u, live)
	if roleRefChanges(wanted, live) {
		return e.anew(ctx, u, live, ours, "its roleRef cannot be changed")
	}
	_, result, err := apply.Over(ctx, e.steps, wanted, live)
	switch {
	case apierrors.IsConflict(err):
		return "", fmt.Errorf("%w: %w", errChanged, err)
	case refusal.Immutable(err) && replaceable(live):
		return e.anew(ctx, u, live, ours, err.Error())
	}
	if err == nil && belongsToNobody(live) {
		e.reporter.tookOver(describe(live), owner.name)
	}
	return result, err
}

// stays is an error for an object that is gone, or going.
func stays(u, live *unstructured.Unstructured) error {
	switch {
	case live == nil:
		return fmt.Errorf("%s %s was deleted: %w", u.GetKind(), u.GetName(), errChanged)
	case live.GetDeletionTimestamp() != nil:
		return fmt.Errorf("%s %s is being deleted; it is recreated when it is gone, which waits for its finalizers (%s)",
			live.GetKind(), live.GetName(), strings.Join(live.GetFinalizers(), ", "))
	}
	return nil
}

// belongsToNobody says whether somebody has made an object who is no lifecycle manager.
func belongsToNobody(live *unstructured.Unstructured) bool {
	return len(claims(live)) == 0 && live.GetLabels()[api.LabelManaged] == ""
}

// anew deletes an object that cannot be changed into what it is to be, and makes it
// again, if it is this operator's own.
func (e *execution) anew(ctx context.Context, u, live *unstructured.Unstructured, ours bool, why string) (apply.Result, error) {
	name := describe(live)
	if !ours {
		return "", fmt.Errorf("%w: %s, and %s was not made for this operator; delete it if nothing else needs it, and the plan recreates it", errForeign, why, name)
	}
	// Another object of that name is not the one that was looked at.
	err := e.steps.Delete(ctx, live, client.Preconditions{UID: new(live.GetUID()), ResourceVersion: new(live.GetResourceVersion())})
	switch {
	case apierrors.IsConflict(err):
		return "", fmt.Errorf("%w: %w", errChanged, err)
	case client.IgnoreNotFound(err) != nil:
		return "", fmt.Errorf("deleting %s to recreate it: %w", name, err)
	}
	if _, absent, err := apply.IfAbsent(ctx, e.steps, u); err != nil || absent {
		return apply.Updated, err
	}
	return "", fmt.Errorf("%s was recreated: %w", name, errChanged)
}

// reconciled is what is applied over an object that is there, so that nothing is
// lost of it which others need.
func reconciled(u, live *unstructured.Unstructured) *unstructured.Unstructured {
	wanted := u.DeepCopy()
	switch u.GetKind() {
	case "ServiceAccount":
		// The API replaces this list as a whole; clusters and users add to it.
		keepPullSecrets(wanted, live)
	case "Service":
		// An address is given once, whatever the bundle wishes.
		if has, _, _ := unstructured.NestedString(live.Object, "spec", "clusterIP"); has != "" {
			keepField(wanted, live, "clusterIP")
			keepField(wanted, live, "clusterIPs")
		}
	}
	return wanted
}

// keepField makes a field of spec what it is in the live object.
func keepField(wanted, live *unstructured.Unstructured, name string) {
	unstructured.RemoveNestedField(wanted.Object, "spec", name)
	if has, found, err := unstructured.NestedFieldCopy(live.Object, "spec", name); err == nil && found {
		_ = unstructured.SetNestedField(wanted.Object, has, "spec", name) // a spec that is no object is the API server's to refuse
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

// roleRefChanges says whether a binding would be given another role.
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

// replaceable says whether an object may be deleted and made again when the API does
// not let it be changed: nothing but its content is lost.
func replaceable(live *unstructured.Unstructured) bool {
	return slices.Contains([]string{"ConfigMap", "PriorityClass", "RoleBinding", "ClusterRoleBinding"}, live.GetKind())
}

// describe names an object the way kubectl would.
func describe(u *unstructured.Unstructured) string {
	if u.GetNamespace() == "" {
		return u.GetKind() + " " + u.GetName()
	}
	return u.GetKind() + " " + u.GetNamespace() + "/" + u.GetName()
}
