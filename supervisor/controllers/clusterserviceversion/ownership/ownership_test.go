package ownership_test

import (
	"maps"
	"testing"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chandlery/chandlery/supervisor/controllers/clusterserviceversion/ownership"
)

// TestOwner has the labels of an object of a version, each changed or removed.
func TestOwner(t *testing.T) {
	csv := &operatorsv1alpha1.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{Namespace: "kitchen", Name: "kettle.v1"}}
	labels := func(key, value string) map[string]string {
		out := maps.Clone(ownership.ManagedLabels(csv))
		out[key] = value
		return out
	}
	for name, tc := range map[string]struct {
		labels map[string]string
		owner  types.NamespacedName // empty for none
		names  bool
	}{
		"Own":            {labels("example.com/other", ""), types.NamespacedName{Namespace: "kitchen", Name: "kettle.v1"}, true},
		"OtherName":      {labels("olm.owner", "pot.v1"), types.NamespacedName{Namespace: "kitchen", Name: "pot.v1"}, false},
		"OtherNamespace": {labels("olm.owner.namespace", "pantry"), types.NamespacedName{Namespace: "pantry", Name: "kettle.v1"}, false},
		"OtherKind":      {labels("olm.owner.kind", "Subscription"), types.NamespacedName{}, false},
		"NoName":         {labels("olm.owner", ""), types.NamespacedName{}, false},
		"NoNamespace":    {labels("olm.owner.namespace", ""), types.NamespacedName{}, false},
		"None":           {nil, types.NamespacedName{}, false},
	} {
		owner, ok := ownership.Of(tc.labels)
		if ok != (tc.owner != types.NamespacedName{}) || ok && owner != tc.owner {
			t.Errorf("%s: Of(...) = %s, %t, want %s", name, owner, ok, tc.owner)
		}
		if got := ownership.Names(tc.labels, csv); got != tc.names {
			t.Errorf("%s: Names(...) = %t, want %t", name, got, tc.names)
		}
	}
}
