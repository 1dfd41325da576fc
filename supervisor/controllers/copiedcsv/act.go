package copiedcsv

import (
	"context"
	"errors"
	"fmt"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/apply"
)

// errOtherOwner is returned if an object with another owner has the name of a copy. That object stays
// unchanged.
var errOtherOwner = errors.New("it has another owner")

// writer executes steps.
type writer struct {
	client client.Client // all writes
	live   client.Reader // reads from the API server
	clock  clock.PassiveClock
	limits limits
	counts *counts
}

// copyTemplate is the wanted content of the copies of one version.
type copyTemplate struct {
	key         types.NamespacedName
	csv         *operatorsv1alpha1.ClusterServiceVersion
	fingerprint fingerprint
}

// execute executes a step. All steps are idempotent. found describes the copy, or the role or binding that
// was compared, afterwards; it is nil for other steps and if the copy is gone.
func (w writer) execute(ctx context.Context, s step, m copyTemplate) (found *record, err error) {
	switch s.action {
	case createCopy:
		return w.createCopy(ctx, s, m)
	case syncCopy:
		return w.syncCopy(ctx, s, m)
	case deleteCopy:
		return nil, w.remove(ctx, s, &operatorsv1alpha1.ClusterServiceVersion{})
	case deleteBinding:
		return nil, w.remove(ctx, s, &rbacv1.RoleBinding{})
	case deleteRole:
		return nil, w.remove(ctx, s, &rbacv1.Role{})
	case applyRole:
		return w.applyRBAC(ctx, s, m, s.role)
	case applyBinding:
		return w.applyRBAC(ctx, s, m, s.binding)
	}
	return nil, fmt.Errorf("unknown action %q", s.action)
}

// remove deletes the object with the UID of the step. A newer object of the same name stays.
func (w writer) remove(ctx context.Context, s step, obj client.Object) error {
	if err := w.limits.write(ctx); err != nil {
		return err
	}
	obj.SetNamespace(s.namespace)
	obj.SetName(s.name)
	err := apply.DeleteIf(ctx, w.client, obj, client.Preconditions{UID: &s.uid})
	w.counts.countWrite(string(s.action), err)
	switch {
	case apierrors.IsNotFound(err), apierrors.IsConflict(err):
		return nil
	case err != nil:
		return fmt.Errorf("deleting the copied %T %s/%s: %w", obj, s.namespace, s.name, err)
	}
	return nil
}

// createCopy creates a copy.
func (w writer) createCopy(ctx context.Context, s step, m copyTemplate) (*record, error) {
	u, err := manifestFor(m.csv, s.namespace)
	if err != nil {
		return nil, err
	}
	if err := w.limits.write(ctx); err != nil {
		return nil, err
	}
	made, absent, err := apply.CreateIfAbsent(ctx, w.client, u)
	w.counts.countWrite(string(s.action), err)
	if err != nil {
		return nil, fmt.Errorf("copying ClusterServiceVersion %s to namespace %s: %w", m.key, s.namespace, err)
	}
	if !absent {
		return w.resolveExisting(ctx, s, m)
	}
	created := &operatorsv1alpha1.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{
		Namespace: s.namespace, Name: m.key.Name, UID: made.GetUID(), ResourceVersion: made.GetResourceVersion(),
	}}
	return w.updateStatus(ctx, created, m)
}

// resolveExisting handles an existing object where createCopy expected none. Usually, it is a copy that the
// cache lacks.
func (w writer) resolveExisting(ctx context.Context, s step, m copyTemplate) (*record, error) {
	live := copyMetadata()
	if err := w.live.Get(ctx, client.ObjectKey{Namespace: s.namespace, Name: m.key.Name}, live); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	if live.Labels[api.LabelCopiedFrom] != m.key.Namespace {
		return nil, fmt.Errorf("ClusterServiceVersion %s/%s: %w. Delete it, or remove namespace %s from the OperatorGroup's targets",
			s.namespace, m.key.Name, errOtherOwner, s.namespace)
	}
	s.uid = live.UID
	return w.syncCopy(ctx, s, m)
}

// syncCopy reads a copy and corrects differences. It writes nothing to a copy that matches.
func (w writer) syncCopy(ctx context.Context, s step, m copyTemplate) (*record, error) {
	if err := w.limits.read(ctx); err != nil {
		return nil, err
	}
	live := &operatorsv1alpha1.ClusterServiceVersion{}
	if err := w.live.Get(ctx, client.ObjectKey{Namespace: s.namespace, Name: m.key.Name}, live); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, nil //nolint:nilnil // Its deletion is on the way here.
		}
		return nil, fmt.Errorf("reading the copy of ClusterServiceVersion %s in namespace %s: %w", m.key, s.namespace, err)
	}
	if live.UID != s.uid || live.Labels[api.LabelCopiedFrom] != m.key.Namespace || isDeleting(live) {
		return nil, nil //nolint:nilnil // It is another one now; that is on the way here too.
	}
	if !sameContent(live, m.csv) {
		if err := w.updateCopy(ctx, live, m); err != nil {
			return nil, err
		}
	}
	return w.updateStatus(ctx, live, m)
}

// updateCopy applies a version to one of its copies and updates the resource version of live.
func (w writer) updateCopy(ctx context.Context, live *operatorsv1alpha1.ClusterServiceVersion, m copyTemplate) error {
	u, err := manifestFor(m.csv, live.Namespace)
	if err != nil {
		return err
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(live)
	if err != nil {
		return fmt.Errorf("decoding the copy of ClusterServiceVersion %s in namespace %s: %w", m.key, live.Namespace, err)
	}
	before := &unstructured.Unstructured{Object: content}
	before.SetGroupVersionKind(u.GroupVersionKind())
	if err := w.limits.write(ctx); err != nil {
		return err
	}
	after, _, err := apply.Update(ctx, w.client, u, before)
	w.counts.countWrite(string(syncCopy), err)
	if err != nil {
		return fmt.Errorf("correcting the copy of ClusterServiceVersion %s in namespace %s: %w", m.key, live.Namespace, err)
	}
	live.ResourceVersion = after.GetResourceVersion()
	return nil
}

// updateStatus writes the status of a copy if it differs. It uses an optimistic lock, because a merge
// patch replaces lists as a whole.
func (w writer) updateStatus(ctx context.Context, live *operatorsv1alpha1.ClusterServiceVersion, m copyTemplate) (*record, error) {
	if !sameStatus(live, m.csv) {
		meta := metav1.ObjectMeta{Namespace: live.Namespace, Name: live.Name, ResourceVersion: live.ResourceVersion}
		base := &operatorsv1alpha1.ClusterServiceVersion{ObjectMeta: meta, Status: live.Status}
		// The client decodes the response into changed, and the template shares its status with the
		// cache.
		changed := &operatorsv1alpha1.ClusterServiceVersion{ObjectMeta: meta, Status: *m.csv.Status.DeepCopy()}
		if err := w.limits.write(ctx); err != nil {
			return nil, err
		}
		err := apply.PatchStatus(ctx, w.client, changed, apply.MergeFromLocked(base))
		w.counts.countWrite(actionStatus, err)
		if err != nil {
			return nil, fmt.Errorf("writing the status of the copy of ClusterServiceVersion %s in namespace %s: %w", m.key, live.Namespace, err)
		}
		live.ResourceVersion = changed.ResourceVersion
	}
	return &record{uid: live.UID, version: live.ResourceVersion, fingerprint: m.fingerprint, at: w.clock.Now()}, nil
}

// applyRBAC creates or corrects a copied role or binding.
func (w writer) applyRBAC(ctx context.Context, s step, m copyTemplate, want client.Object) (*record, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(want)
	if err != nil {
		return nil, fmt.Errorf("encoding %T %s: %w", want, s.name, err)
	}
	unstructured.RemoveNestedField(content, "metadata", "creationTimestamp")
	u := &unstructured.Unstructured{Object: content}
	var found *record
	if s.trimmed {
		found, err = w.syncRBAC(ctx, s, m, u)
	} else {
		err = w.write(ctx, s, m, u)
	}
	if err != nil {
		return nil, fmt.Errorf("granting the operator of ClusterServiceVersion %s its permissions in namespace %s: %w", m.key, s.namespace, err)
	}
	return found, nil
}

// write creates a role or binding. If it exists, write corrects it, unless it has another owner.
func (w writer) write(ctx context.Context, s step, m copyTemplate, u *unstructured.Unstructured) (err error) {
	if err := w.limits.write(ctx); err != nil {
		return err
	}
	defer func() { w.counts.countWrite(string(s.action), err) }()
	if s.uid == "" {
		if _, absent, err := apply.CreateIfAbsent(ctx, w.client, u); err != nil || absent {
			return err
		}
	}
	live, err := w.readRBAC(ctx, u, m)
	if err != nil {
		return err
	}
	_, _, err = apply.Update(ctx, w.client, u, live)
	return err
}

// syncRBAC reads a role or binding and corrects differences. It writes nothing if it matches. Memory
// holds one object at a time, of any size that the API server stores.
func (w writer) syncRBAC(ctx context.Context, s step, m copyTemplate, u *unstructured.Unstructured) (*record, error) {
	if err := w.limits.read(ctx); err != nil {
		return nil, err
	}
	live, err := w.readRBAC(ctx, u, m)
	if err != nil {
		return nil, err
	}
	differs, err := apply.Differs(u, live)
	if err != nil {
		return nil, err
	}
	if differs {
		if err := w.limits.write(ctx); err != nil {
			return nil, err
		}
		live, _, err = apply.Update(ctx, w.client, u, live)
		w.counts.countWrite(string(s.action), err)
		if err != nil {
			return nil, err
		}
	}
	return &record{uid: live.GetUID(), version: live.GetResourceVersion(), at: w.clock.Now()}, nil
}

// readRBAC reads a role or binding from the API server. The error is errOtherOwner if it has another owner.
func (w writer) readRBAC(ctx context.Context, u *unstructured.Unstructured, m copyTemplate) (*unstructured.Unstructured, error) {
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(u.GroupVersionKind())
	if err := w.live.Get(ctx, client.ObjectKeyFromObject(u), live); err != nil {
		return nil, fmt.Errorf("reading %s %s/%s: %w", u.GetKind(), u.GetNamespace(), u.GetName(), err)
	}
	if owner, ok := ownerOf(live); !ok || owner != m.key || !isCopied(live) {
		return nil, fmt.Errorf("%s %s/%s: %w. Delete it, or remove namespace %s from the OperatorGroup's targets",
			u.GetKind(), u.GetNamespace(), u.GetName(), errOtherOwner, u.GetNamespace())
	}
	return live, nil
}
