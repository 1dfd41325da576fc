package operatorgroup

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func TestPhaseChanged(t *testing.T) {
	cases := map[string]struct {
		reason string
		change func(*operatorsv1alpha1.ClusterServiceVersion)
		want   bool
	}{
		"Nothing": {"a resync", func(*operatorsv1alpha1.ClusterServiceVersion) {}, false},
		"Message": {"what it says makes no difference", func(csv *operatorsv1alpha1.ClusterServiceVersion) { csv.Status.Message = "x" }, false},
		"Phase":   {"its API may be there now", func(csv *operatorsv1alpha1.ClusterServiceVersion) { csv.Status.Phase = "Succeeded" }, true},
		"Spec":    {"it may provide something else", func(csv *operatorsv1alpha1.ClusterServiceVersion) { csv.Generation++ }, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			after := lamps()
			tc.change(after)
			if got := phaseChanged().Update(event.UpdateEvent{ObjectOld: lamps(), ObjectNew: after}); got != tc.want {
				t.Errorf("%s\nphaseChanged() = %t, want %t", tc.reason, got, tc.want)
			}
		})
	}
}

func TestGroupsNamespace(t *testing.T) {
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Labels: groupLabels(claiming("kitchen", "group", ""))}}
	if diff := cmp.Diff([]reconcile.Request{request("kitchen")}, groupsNamespace(t.Context(), role)); diff != "" {
		t.Errorf("groupsNamespace(a role of a group): -want, +got:\n%s", diff)
	}
	role.Labels["olm.owner.kind"] = "ClusterServiceVersion"
	if got := groupsNamespace(t.Context(), role); got != nil {
		t.Errorf("groupsNamespace(a role of a version) = %v, want nothing", got)
	}
}

func TestProvidedIndex(t *testing.T) {
	csv := lamps()
	if got := provided(csv); len(got) != 1 {
		t.Errorf("provided(...) = %v, want one hash", got)
	}
	csv.Labels = map[string]string{operatorsv1alpha1.CopiedLabelKey: "pantry"}
	if got := provided(csv); len(got) != 0 {
		t.Errorf("provided(a copy) = %v, want nothing", got)
	}
}
