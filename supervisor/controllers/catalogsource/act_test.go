package catalogsource

import (
	"testing"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestOwned(t *testing.T) {
	source := &operatorsv1alpha1.CatalogSource{ObjectMeta: metav1.ObjectMeta{Name: "shop", UID: "ours"}}
	ours := metav1.OwnerReference{APIVersion: "operators.coreos.com/v1alpha1", Kind: "CatalogSource", Name: "shop", UID: "ours"}
	change := func(ref metav1.OwnerReference, f func(*metav1.OwnerReference)) metav1.OwnerReference {
		f(&ref)
		return ref
	}
	controls := change(ours, func(r *metav1.OwnerReference) { r.Controller = new(true) })
	set := metav1.OwnerReference{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "shop", UID: "set", Controller: new(true)}
	for name, tt := range map[string]struct {
		refs []metav1.OwnerReference
		want bool
	}{
		"nobody":             {},
		"controller":         {[]metav1.OwnerReference{controls}, true},
		"no controller":      {[]metav1.OwnerReference{ours}, true},
		"controller false":   {[]metav1.OwnerReference{change(ours, func(r *metav1.OwnerReference) { r.Controller = new(false) })}, true},
		"another controller": {[]metav1.OwnerReference{ours, set}, false},
		"another object":     {[]metav1.OwnerReference{change(ours, func(r *metav1.OwnerReference) { r.UID = "theirs" })}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := isOwnedBy(&corev1.Service{ObjectMeta: metav1.ObjectMeta{OwnerReferences: tt.refs}}, source); got != tt.want {
				t.Errorf("owned: %t, want %t", got, tt.want)
			}
		})
	}
}
