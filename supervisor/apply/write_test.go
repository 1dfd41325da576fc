package apply_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/apply"
	"github.com/chandlery/chandlery/test/controlplane"
)

// managersOf returns the field managers of an object.
func managersOf(o metav1.Object) []string {
	var names []string
	for _, entry := range o.GetManagedFields() {
		names = append(names, entry.Manager)
	}
	slices.Sort(names)
	return names
}

// TestSingleWrites checks the field managers and the locks of the functions that send one request.
func TestSingleWrites(t *testing.T) {
	c, ctx := newClient(t), t.Context()
	meta := metav1.ObjectMeta{Namespace: controlplane.Namespace(t), Name: "settings"}
	o := &corev1.ConfigMap{ObjectMeta: meta}
	o.Data = map[string]string{"a": "1"}
	if err := apply.Create(ctx, c, o); err != nil {
		t.Fatal(err)
	}
	first := o.DeepCopy()
	o.Data["a"] = "2"
	if err := apply.Patch(ctx, c, o, apply.MergeFromLocked(first)); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{api.FieldManager}, managersOf(o)); diff != "" {
		t.Errorf("field managers (-want +got):\n%s", diff)
	}
	outdated := first.DeepCopy()
	outdated.Data["a"] = "3"
	if err := apply.Patch(ctx, c, outdated.DeepCopy(), apply.MergeFromLocked(first)); !apierrors.IsConflict(err) {
		t.Errorf("a patch from what was read before a change: %v", err)
	}
	if err := apply.Replace(ctx, c, outdated.DeepCopy()); !apierrors.IsConflict(err) {
		t.Errorf("replacing what was read before a change: %v", err)
	}
	for _, manager := range []client.FieldOwner{"other", apply.UserAgent} {
		target := &corev1.ConfigMap{ObjectMeta: meta}
		patch := apply.MergePatch{"data": map[string]any{"of" + string(manager): "1"}}
		if err := apply.Patch(ctx, c, target, patch, manager); err != nil {
			t.Fatal(err)
		}
		o = target
	}
	if diff := cmp.Diff([]string{"apply.test", api.FieldManager, "other"}, managersOf(o)); diff != "" {
		t.Errorf("field managers (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{"a": "2", "of": "1", "ofother": "1"}, o.Data); diff != "" {
		t.Errorf("data (-want +got):\n%s", diff)
	}
}

// TestDeletePreconditions deletes an object that was changed, recreated or deleted after it was read.
func TestDeletePreconditions(t *testing.T) {
	c, ctx := newClient(t), t.Context()
	read := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: controlplane.Namespace(t), Name: "settings"}}
	if err := apply.Create(ctx, c, read); err != nil {
		t.Fatal(err)
	}
	changed := read.DeepCopy()
	changed.Data = map[string]string{"a": "1"}
	if err := apply.Replace(ctx, c, changed); err != nil {
		t.Fatal(err)
	}
	other := read.DeepCopy()
	other.UID = "other"
	for reason, err := range map[string]error{
		"it was changed":                     apply.Delete(ctx, c, read),
		"it was changed, with preconditions": apply.DeleteIf(ctx, c, read, apply.SameVersion(read)),
		"it was recreated":                   apply.DeleteIf(ctx, c, other, apply.SameUID(other)),
		"it was recreated, with an option":   apply.Delete(ctx, c, other, apply.SameUID(other)),
	} {
		if !apierrors.IsConflict(err) {
			t.Errorf("%s: %v, want a conflict", reason, err)
		}
	}
	if err := apply.Delete(ctx, c, read, apply.SameUID(read)); err != nil {
		t.Errorf("the same object in another version: %v", err)
	}
	if err := apply.Delete(ctx, c, read); err != nil {
		t.Errorf("a deleted object: %v", err)
	}
	if err := apply.DeleteIf(ctx, c, read, apply.SameUID(read)); !apierrors.IsNotFound(err) {
		t.Errorf("a deleted object, with preconditions: %v, want not found", err)
	}
}
