package apply_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/apply"
)

func TestSameVersion(t *testing.T) {
	cases := map[string]struct {
		reason string
		object client.Object
		want   client.Preconditions
	}{
		"Read": {
			"another version may have taken it over since",
			&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{UID: "1", ResourceVersion: "7"}},
			client.Preconditions{UID: new(types.UID("1")), ResourceVersion: new("7")},
		},
		"Named": {
			"of an object that was not read only the UID is known",
			&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{UID: "1"}},
			client.Preconditions{UID: new(types.UID("1"))},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, apply.SameVersion(tc.object)); diff != "" {
				t.Errorf("%s\nSameVersion(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
