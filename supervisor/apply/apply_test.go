package apply_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/apply"
	"github.com/chandlery/chandlery/test/controlplane"
	"github.com/chandlery/chandlery/test/testenv"
)

func TestMain(m *testing.M) {
	os.Exit(testenv.Main(m, controlplane.Options{Nodes: -1}))
}

func newClient(t *testing.T) client.Client {
	t.Helper()
	c, err := client.New(controlplane.Get(t).Config(), client.Options{Scheme: clientgoscheme.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func configMap(namespace string, data map[string]any, owners ...metav1.OwnerReference) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"namespace": namespace, "name": "settings"},
		"data":     data,
	}}
	if len(owners) > 0 {
		u.SetOwnerReferences(owners)
	}
	return u
}

// owner returns a reference to an object that need not exist. The garbage collector ignores objects that are
// less than some minutes old.
func owner(kind, name string) metav1.OwnerReference {
	return metav1.OwnerReference{
		APIVersion: "operators.coreos.com/v1alpha1", Kind: kind, Name: name, UID: types.UID("uid-" + name),
		Controller: new(false), BlockOwnerDeletion: new(false),
	}
}

func live(t *testing.T, c client.Client, namespace string) *corev1.ConfigMap {
	t.Helper()
	found := &corev1.ConfigMap{}
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "settings"}, found); err != nil {
		t.Fatal(err)
	}
	return found
}

// write creates an object, or brings the existing one to its state.
func write(ctx context.Context, c client.Client, u *unstructured.Unstructured) (apply.Result, error) {
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(u.GroupVersionKind())
	err := c.Get(ctx, client.ObjectKeyFromObject(u), live)
	if apierrors.IsNotFound(err) {
		_, _, err := apply.CreateIfAbsent(ctx, c, u)
		return apply.Created, err
	}
	if err != nil {
		return "", err
	}
	_, result, err := apply.Update(ctx, c, u, live)
	return result, err
}

func mustApply(t *testing.T, c client.Client, u *unstructured.Unstructured, want apply.Result) {
	t.Helper()
	before := u.DeepCopy()
	got, err := write(t.Context(), c, u)
	if err != nil {
		t.Fatal(err)
	}
	if got != want {
		t.Errorf("result %s, want %s", got, want)
	}
	if diff := cmp.Diff(before, u); diff != "" {
		t.Errorf("the caller's object was changed:\n%s", diff)
	}
}

func TestObject(t *testing.T) {
	c, namespace := newClient(t), controlplane.Namespace(t)
	mustApply(t, c, configMap(namespace, map[string]any{"a": "1", "b": "1"}), apply.Created)
	mustApply(t, c, configMap(namespace, map[string]any{"a": "1", "b": "1"}), apply.Unchanged)
	mustApply(t, c, configMap(namespace, map[string]any{"a": "2"}), apply.Updated)
	if diff := cmp.Diff(map[string]string{"a": "2"}, live(t, c, namespace).Data); diff != "" {
		t.Errorf("what is no longer wanted is still there (-want +got):\n%s", diff)
	}
}

func TestObjectLeavesOthersFieldsAlone(t *testing.T) {
	c, namespace := newClient(t), controlplane.Namespace(t)
	mustApply(t, c, configMap(namespace, map[string]any{"ours": "1"}), apply.Created)
	// Another writer adds a field, and takes over one of ours.
	theirs := live(t, c, namespace)
	theirs.Data["theirs"], theirs.Data["ours"] = "1", "taken"
	theirs.Labels = map[string]string{"theirs": "yes"}
	if err := c.Update(t.Context(), theirs, client.FieldOwner("somebody")); err != nil {
		t.Fatal(err)
	}
	mustApply(t, c, configMap(namespace, map[string]any{"ours": "2"}), apply.Updated)
	found := live(t, c, namespace)
	if diff := cmp.Diff(map[string]string{"ours": "2", "theirs": "1"}, found.Data); diff != "" {
		t.Errorf("data (-want +got):\n%s", diff)
	}
	if found.Labels["theirs"] != "yes" {
		t.Errorf("labels %v", found.Labels)
	}
}

func TestObjectKeepsTheOwnersThatShareIt(t *testing.T) {
	c, namespace := newClient(t), controlplane.Namespace(t)
	first, second, other := owner("ClusterServiceVersion", "lamp.v1"), owner("ClusterServiceVersion", "lamp.v2"), owner("Subscription", "other")
	mustApply(t, c, configMap(namespace, nil, first), apply.Created)
	theirs := live(t, c, namespace)
	theirs.OwnerReferences = append(theirs.OwnerReferences, other)
	if err := c.Update(t.Context(), theirs, client.FieldOwner("somebody")); err != nil {
		t.Fatal(err)
	}
	mustApply(t, c, configMap(namespace, nil, second), apply.Updated)
	mustApply(t, c, configMap(namespace, nil, second), apply.Unchanged)
	var names []string
	for _, ref := range live(t, c, namespace).OwnerReferences {
		names = append(names, ref.Kind+" "+ref.Name)
	}
	want := map[string]bool{"ClusterServiceVersion lamp.v1": true, "ClusterServiceVersion lamp.v2": true, "Subscription other": true}
	got := map[string]bool{}
	for _, name := range names {
		got[name] = true
	}
	if diff := cmp.Diff(want, got); diff != "" || len(names) != len(want) {
		t.Errorf("owners %v (-want +got):\n%s", names, diff)
	}
}

func TestObjectErrors(t *testing.T) {
	c, namespace := newClient(t), controlplane.Namespace(t)
	for _, tt := range []struct {
		object *unstructured.Unstructured
		want   string
		is     func(error) bool
	}{
		{object: configMap("t-gone", nil), want: "creating ConfigMap t-gone/settings", is: apierrors.IsNotFound},
		{object: configMap(namespace, map[string]any{"/": "x"}), want: fmt.Sprintf("creating ConfigMap %s/settings", namespace), is: apierrors.IsInvalid},
	} {
		_, err := write(t.Context(), c, tt.object)
		if err == nil || !strings.HasPrefix(err.Error(), tt.want) || !tt.is(err) {
			t.Errorf("error %v, want %q", err, tt.want)
		}
	}
}

func TestCreateIfAbsent(t *testing.T) {
	c, namespace := newClient(t), controlplane.Namespace(t)
	made, absent, err := apply.CreateIfAbsent(t.Context(), c, configMap(namespace, map[string]any{"a": "1"}))
	if err != nil || !absent || made.GetUID() == "" {
		t.Fatalf("%v, absent %v, error %v", made, absent, err)
	}
	if made, absent, err := apply.CreateIfAbsent(t.Context(), c, configMap(namespace, map[string]any{"a": "2"})); err != nil || absent || made != nil {
		t.Errorf("where there is one: %v, absent %v, error %v", made, absent, err)
	}
	if got := live(t, c, namespace); got.Data["a"] != "1" || got.ResourceVersion != made.GetResourceVersion() {
		t.Errorf("what was there was touched: %v", got)
	}
	// CreateIfAbsent and Update write as the same field manager.
	mustApply(t, c, configMap(namespace, map[string]any{"b": "1"}), apply.Updated)
	if diff := cmp.Diff(map[string]string{"b": "1"}, live(t, c, namespace).Data); diff != "" {
		t.Errorf("what is no longer wanted is still there (-want +got):\n%s", diff)
	}
	if _, _, err := apply.CreateIfAbsent(t.Context(), c, configMap("t-gone", nil)); !apierrors.IsNotFound(err) || !strings.HasPrefix(err.Error(), "creating ConfigMap t-gone/settings") {
		t.Errorf("error %v", err)
	}
}

func TestUpdateOfLive(t *testing.T) {
	c, namespace := newClient(t), controlplane.Namespace(t)
	first, _, err := apply.CreateIfAbsent(t.Context(), c, configMap(namespace, nil, owner("ClusterServiceVersion", "lamp.v1")))
	if err != nil {
		t.Fatal(err)
	}
	second, result, err := apply.Update(t.Context(), c, configMap(namespace, map[string]any{"a": "1"}, owner("ClusterServiceVersion", "lamp.v2")), first)
	if err != nil || result != apply.Updated || len(second.GetOwnerReferences()) != 2 {
		t.Fatalf("%v, result %s, error %v", second, result, err)
	}
	if _, result, err := apply.Update(t.Context(), c, configMap(namespace, map[string]any{"a": "1"}), second); err != nil || result != apply.Unchanged {
		t.Errorf("result %s, error %v", result, err)
	}
	if _, _, err := apply.Update(t.Context(), c, configMap(namespace, map[string]any{"a": "2"}), first); !apierrors.IsConflict(err) {
		t.Errorf("what has changed since is overwritten: %v", err)
	}
}
