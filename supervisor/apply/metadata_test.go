package apply_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/apply"
	"github.com/chandlery/chandlery/test/controlplane"
)

func TestPatchMetadata(t *testing.T) {
	c := newClient(t)
	cases := map[string]struct {
		reason string
		// between runs after the object was read.
		between func(t *testing.T, read *unstructured.Unstructured)
		remove  []string
		want    map[string]string
		refused func(error) bool
	}{
		"Unchanged": {
			reason: "the key is added, and the one that is no longer valid is removed",
			remove: []string{"example.com/old"}, want: map[string]string{"example.com/new": "x"},
		},
		"Changed": {
			reason: "a key of its own needs no lock",
			between: func(t *testing.T, read *unstructured.Unstructured) {
				t.Helper()
				annotate(t, c, read, "example.com/other", "z")
			},
			want: map[string]string{"example.com/old": "y", "example.com/other": "z", "example.com/new": "x"},
		},
		"ChangedWhereKeysAreRemoved": {
			reason: "what is removed may have been written again",
			between: func(t *testing.T, read *unstructured.Unstructured) {
				t.Helper()
				annotate(t, c, read, "example.com/old", "z")
			},
			remove: []string{"example.com/old"}, want: map[string]string{"example.com/old": "z"}, refused: apierrors.IsConflict,
		},
		"Recreated": {
			reason: "another object of the name was not checked",
			between: func(t *testing.T, read *unstructured.Unstructured) {
				t.Helper()
				deleteIt(t, c, read)
				mustApply(t, c, configMap(read.GetNamespace(), map[string]any{"a": "other"}), apply.Created)
			},
			want: nil, refused: apierrors.IsConflict,
		},
		"Deleted": {
			reason: "nothing is created",
			between: func(t *testing.T, read *unstructured.Unstructured) {
				t.Helper()
				deleteIt(t, c, read)
			},
			refused: apierrors.IsNotFound,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			u := configMap(controlplane.Namespace(t), map[string]any{"a": "1"})
			u.SetAnnotations(map[string]string{"example.com/old": "y"})
			mustApply(t, c, u, apply.Created)
			read := &unstructured.Unstructured{}
			read.SetGroupVersionKind(u.GroupVersionKind())
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(u), read); err != nil {
				t.Fatal(err)
			}
			if tc.between != nil {
				tc.between(t, read)
			}
			err := apply.PatchMetadata(t.Context(), c, read, apply.MetadataPatch{Annotations: map[string]string{"example.com/new": "x"}, Remove: tc.remove})
			if refused := tc.refused != nil; (err != nil) != refused || refused && !tc.refused(err) {
				t.Errorf("%s: error %v", tc.reason, err)
			}
			found := &corev1.ConfigMap{}
			err = client.IgnoreNotFound(c.Get(t.Context(), client.ObjectKeyFromObject(u), found))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, found.Annotations); diff != "" {
				t.Errorf("%s: annotations -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestRemoveAnnotations(t *testing.T) {
	c := newClient(t)
	cases := map[string]struct {
		reason string
		// between runs after the object was read.
		between func(t *testing.T, read *unstructured.Unstructured)
		want    map[string]string
		refused func(error) bool
	}{
		"Changed": {
			reason: "a key of its own needs no lock",
			between: func(t *testing.T, read *unstructured.Unstructured) {
				t.Helper()
				annotate(t, c, read, "example.com/other", "z")
			},
			want: map[string]string{"example.com/other": "z"},
		},
		"Recreated": {
			reason: "the keys of another object of the name may have another writer",
			between: func(t *testing.T, read *unstructured.Unstructured) {
				t.Helper()
				deleteIt(t, c, read)
				u := configMap(read.GetNamespace(), map[string]any{"a": "other"})
				u.SetAnnotations(map[string]string{"example.com/old": "y"})
				mustApply(t, c, u, apply.Created)
			},
			want: map[string]string{"example.com/old": "y"}, refused: apierrors.IsConflict,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			u := configMap(controlplane.Namespace(t), map[string]any{"a": "1"})
			u.SetAnnotations(map[string]string{"example.com/old": "y"})
			u.SetLabels(map[string]string{"example.com/label": "x"})
			mustApply(t, c, u, apply.Created)
			read := &unstructured.Unstructured{}
			read.SetGroupVersionKind(u.GroupVersionKind())
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(u), read); err != nil {
				t.Fatal(err)
			}
			tc.between(t, read)
			err := apply.RemoveAnnotations(t.Context(), c, read, []string{"example.com/old"})
			if refused := tc.refused != nil; (err != nil) != refused || refused && !tc.refused(err) {
				t.Errorf("%s: error %v", tc.reason, err)
			}
			found := &corev1.ConfigMap{}
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(u), found); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, found.Annotations); diff != "" {
				t.Errorf("%s: annotations -want, +got:\n%s", tc.reason, diff)
			}
			if tc.refused == nil && found.Labels["example.com/label"] != "x" {
				t.Errorf("%s: labels %v", tc.reason, found.Labels)
			}
		})
	}
}

func annotate(t *testing.T, c client.Client, read *unstructured.Unstructured, key, value string) {
	t.Helper()
	changed := read.DeepCopy()
	annotations := changed.GetAnnotations()
	annotations[key] = value
	changed.SetAnnotations(annotations)
	if err := c.Update(t.Context(), changed); err != nil {
		t.Fatal(err)
	}
}

func deleteIt(t *testing.T, c client.Client, read *unstructured.Unstructured) {
	t.Helper()
	if err := c.Delete(t.Context(), read.DeepCopy()); err != nil {
		t.Fatal(err)
	}
}
