package clusterserviceversion

import (
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
)

// TestObsoleteCopiesAreDeletedAsSeen has a copied role that is no longer wanted.
func TestObsoleteCopiesAreDeletedAsSeen(t *testing.T) {
	csv, r := boiling()
	have := desiredClusterRBAC(csv, true, r)
	have.Roles[0].UID, have.Roles[0].ResourceVersion = "1", "7"
	r.ClusterRoles = []rbacv1.ClusterRole{*have.Roles[0]}
	got := obsoleteCopies(csv, clusterRBAC{}, r)
	if len(got) != 1 || got[0].UID != "1" || got[0].ResourceVersion != "7" {
		t.Errorf("surplus(...) = %+v, want the role with its UID and its version", got)
	}
}
