package installplan

import (
	"errors"
	"testing"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/chandlery/chandlery/supervisor/plansteps"
	"github.com/chandlery/chandlery/test/testenv/fixtures"
)

// TestCheckOwners applies objects of lamp.v1 over objects that name a version as their owner.
func TestCheckOwners(t *testing.T) {
	scheme := fixtures.Scheme(t)
	reference := func(kind, name string, uid types.UID, controller bool) metav1.OwnerReference {
		return metav1.OwnerReference{APIVersion: "operators.coreos.com/v1alpha1", Kind: kind, Name: name, UID: uid, Controller: new(controller)}
	}
	version := func(name string) metav1.OwnerReference {
		return reference("ClusterServiceVersion", name, types.UID("uid-"+name), false)
	}
	cases := map[string]struct {
		reason  string
		kind    string // Service where empty
		owners  []metav1.OwnerReference
		labels  map[string]string
		ours    bool
		foreign bool
	}{
		"Unowned":      {reason: "it has no owner"},
		"Own":          {reason: "the version has it", owners: []metav1.OwnerReference{version("lamp.v1")}, ours: true},
		"Replaced":     {reason: "the version that is replaced has it", owners: []metav1.OwnerReference{version("lamp.v0")}, ours: true},
		"Other":        {reason: "another operator has it", owners: []metav1.OwnerReference{version("tray.v1")}, foreign: true},
		"OtherByLabel": {reason: "another operator has it, by its labels", labels: plansteps.OwnerLabels("tray.v1", "ops"), foreign: true},
		"Gone":         {reason: "the other operator is gone", owners: []metav1.OwnerReference{version("gone.v1")}},
		"Recreated": {
			reason: "the owner was another version of that name, so that the reference is void",
			owners: []metav1.OwnerReference{reference("ClusterServiceVersion", "tray.v1", "uid-before", false)},
		},
		"RecreatedPredecessor": {
			reason: "nor is it ours by a version that is no longer there",
			owners: []metav1.OwnerReference{reference("ClusterServiceVersion", "lamp.v0", "uid-before", false)},
		},
		"Shared":     {reason: "operators share service accounts", kind: "ServiceAccount", owners: []metav1.OwnerReference{version("tray.v1")}},
		"Controlled": {reason: "a controller would undo the change", owners: []metav1.OwnerReference{reference("Subscription", "lamp", "1", true)}, foreign: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := fake.NewClientBuilder().WithScheme(scheme)
			for _, installed := range []string{"lamp.v0", "lamp.v1", "tray.v1"} {
				c.WithObjects(&operatorsv1alpha1.ClusterServiceVersion{
					ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: installed, UID: types.UID("uid-" + installed)},
				})
			}
			live := &unstructured.Unstructured{}
			live.SetKind("Service")
			if tc.kind != "" {
				live.SetKind(tc.kind)
			}
			live.SetNamespace("ops")
			live.SetOwnerReferences(tc.owners)
			live.SetLabels(tc.labels)
			a := &objectApplier{observer: &observer{namespace: "ops", live: c.Build()}}
			ours, err := a.checkOwners(t.Context(), &unstructured.Unstructured{}, live, &owner{namespace: "ops", name: "lamp.v1", pkg: "lamp", replaces: "lamp.v0"})
			if ours != tc.ours || errors.Is(err, errOtherOwner) != tc.foreign || err != nil && !tc.foreign {
				t.Errorf("%s: ours %t, error %v", tc.reason, ours, err)
			}
		})
	}
}
