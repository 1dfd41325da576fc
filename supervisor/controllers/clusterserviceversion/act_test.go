package clusterserviceversion

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestDeletesWhatWasRead(t *testing.T) {
	cases := map[string]struct {
		reason string
		object client.Object
		want   client.Preconditions
	}{
		"Read": {
			"who has written to it since may have taken it over",
			&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{UID: "1", ResourceVersion: "7"}},
			client.Preconditions{UID: new(types.UID("1")), ResourceVersion: new("7")},
		},
		"Named": {
			"of what was not read only the object is known",
			&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{UID: "1"}},
			client.Preconditions{UID: new(types.UID("1"))},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, asRead(tc.object)); diff != "" {
				t.Errorf("%s\nasRead(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestSurplusIsDeletedAsSeen has a copied role that is no longer wanted.
func TestSurplusIsDeletedAsSeen(t *testing.T) {
	csv, r := boiling()
	have := desiredLift(csv, true, r)
	have.Roles[0].UID, have.Roles[0].ResourceVersion = "1", "7"
	r.ClusterRoles = []rbacv1.ClusterRole{*have.Roles[0]}
	got := surplus(csv, lifted{}, r)
	if len(got) != 1 || got[0].UID != "1" || got[0].ResourceVersion != "7" {
		t.Errorf("surplus(...) = %+v, want the role with its UID and its version", got)
	}
}
