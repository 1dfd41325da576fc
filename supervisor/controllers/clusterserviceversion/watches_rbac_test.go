package clusterserviceversion

import (
	"testing"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/controllers/clusterserviceversion/ownership"
)

// TestWakesThoseThatWaitForRights checks how many versions a role or binding maps to. One lacks
// permissions of the account cook, one lacks an account, and one runs.
func TestWakesThoseThatWaitForRights(t *testing.T) {
	version := func(name string, phase operatorsv1alpha1.ClusterServiceVersionPhase, status operatorsv1alpha1.StatusReason) client.Object {
		csv := kettle()
		csv.Name, csv.Status.Phase = name, phase
		csv.Status.RequirementStatus = []operatorsv1alpha1.RequirementStatus{{Kind: "ServiceAccount", Name: "cook", Status: status}}
		return csv
	}
	m := mapper{reader: memory(t,
		version("lacks.v1", pending, "PresentNotSatisfied"),
		version("absent.v1", pending, "NotPresent"),
		version("runs.v1", succeeded, "PresentNotSatisfied"),
	)}
	refused := kettle()
	refused.Name, refused.Status.Phase, refused.Status.Reason = "refused.v1", broken, "InstallComponentFailed"
	for name, o := range map[string]client.Object{"Role": &rbacv1.Role{}, "ServiceAccount": accountMetadata()} {
		o.SetNamespace("kitchen")
		o.SetName("cook")
		all := mapper{reader: memory(t, refused)}
		got := all.forRBAC(t.Context(), o)
		if name == "ServiceAccount" {
			got = all.forServiceAccount(t.Context(), o)
		}
		if len(got) != 1 {
			t.Errorf("%s: reconciled again: %v, want the version that was refused", name, got)
		}
	}
	here, elsewhere := metav1.ObjectMeta{Namespace: "kitchen", Name: "b"}, metav1.ObjectMeta{Namespace: "bar", Name: "b"}
	group := func(name string) []rbacv1.Subject { return []rbacv1.Subject{{Kind: rbacv1.GroupKind, Name: name}} }
	account := func(namespace, name string) []rbacv1.Subject {
		return []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: name}}
	}
	for name, tc := range map[string]struct {
		obj  client.Object
		want int
	}{
		"Account":            {&rbacv1.RoleBinding{ObjectMeta: here, Subjects: account("kitchen", "cook")}, 1},
		"AnotherAccount":     {&rbacv1.RoleBinding{ObjectMeta: here, Subjects: account("kitchen", "waiter")}, 0},
		"AnotherNamespace":   {&rbacv1.RoleBinding{ObjectMeta: elsewhere, Subjects: account("kitchen", "cook")}, 0},
		"AllAccounts":        {&rbacv1.ClusterRoleBinding{Subjects: group("system:serviceaccounts")}, 1},
		"AccountsHere":       {&rbacv1.ClusterRoleBinding{Subjects: group("system:serviceaccounts:kitchen")}, 1},
		"AccountsElsewhere":  {&rbacv1.ClusterRoleBinding{Subjects: group("system:serviceaccounts:bar")}, 0},
		"Everybody":          {&rbacv1.RoleBinding{ObjectMeta: here, Subjects: group("system:authenticated")}, 1},
		"People":             {&rbacv1.ClusterRoleBinding{Subjects: group("developers")}, 0},
		"Role":               {&rbacv1.Role{ObjectMeta: here}, 1},
		"RoleElsewhere":      {&rbacv1.Role{ObjectMeta: elsewhere}, 0},
		"ClusterRole":        {&rbacv1.ClusterRole{}, 1},
		"Grant":              {&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{api.LabelGrant: "true"}}}, 0},
		"OwnedBesideWaiting": {&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Labels: ownerLabelsOf("runs.v1")}}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			if got := m.forRBAC(t.Context(), tc.obj); len(got) != tc.want {
				t.Errorf("reconciled again: %v, want %d", got, tc.want)
			}
		})
	}
}

func ownerLabelsOf(name string) map[string]string {
	csv := kettle()
	csv.Name = name
	return ownership.ManagedLabels(csv)
}
