package clusterserviceversion

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chandlery/chandlery/supervisor/controllers/clusterserviceversion/ownership"
	"github.com/chandlery/chandlery/supervisor/webhook"
)

func roleRef(kind, name string) rbacv1.RoleRef {
	return rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: name}
}

// boiling returns an operator whose account boiler may get pods, and the role and the binding that
// a plan creates for it.
func boiling() (*operatorsv1alpha1.ClusterServiceVersion, rbac) {
	csv := kettle()
	csv.Spec.InstallStrategy.StrategySpec.Permissions = []operatorsv1alpha1.StrategyDeploymentPermissions{
		{ServiceAccountName: "boiler", Rules: []rbacv1.PolicyRule{policy("get")}},
	}
	return csv, rbac{
		Roles:        []rbacv1.Role{{ObjectMeta: labelled(csv, "r"), Rules: []rbacv1.PolicyRule{policy("get")}}},
		RoleBindings: []rbacv1.RoleBinding{{ObjectMeta: labelled(csv, "r"), RoleRef: roleRef("Role", "r"), Subjects: boiler()}},
	}
}

// labelled returns the metadata of an object in the namespace of csv with its labels.
func labelled(csv *operatorsv1alpha1.ClusterServiceVersion, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: csv.Namespace, Name: name, Labels: ownership.ManagedLabels(csv)}
}

// TestCopiesWhatIsDeclared has users who may create roles in the operator's namespace and try to get
// them in all.
func TestCopiesWhatIsDeclared(t *testing.T) {
	mallory := rbacv1.Subject{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: "mallory"}
	role := func(name string, verbs ...string) func(*rbac) {
		return func(r *rbac) {
			csv, _ := boiling()
			r.Roles = append(r.Roles, rbacv1.Role{ObjectMeta: labelled(csv, name), Rules: []rbacv1.PolicyRule{policy(verbs...)}})
		}
	}
	binding := func(kind, name string, subjects ...rbacv1.Subject) func(*rbac) {
		return func(r *rbac) {
			csv, _ := boiling()
			r.RoleBindings = append(r.RoleBindings, rbacv1.RoleBinding{
				ObjectMeta: labelled(csv, "more"), RoleRef: roleRef(kind, name), Subjects: subjects,
			})
		}
	}
	before := func(r *rbac) {
		csv, declared := boiling()
		have := desiredClusterRBAC(csv, true, declared)
		r.ClusterRoles, r.ClusterRoleBindings = []rbacv1.ClusterRole{*have.Roles[0]}, []rbacv1.ClusterRoleBinding{*have.Bindings[0]}
	}
	edited := func(r *rbac) { r.Roles[0].Rules = []rbacv1.PolicyRule{policy("*")} }
	rebound := func(r *rbac) { r.RoleBindings[0].Subjects = append(r.RoleBindings[0].Subjects, mallory) }
	cases := map[string]struct {
		reason string
		change []func(*rbac)
		want   []string
	}{
		"Declared":     {"what a plan made", nil, []string{"role r", "binding r of r"}},
		"Undeclared":   {"other rules are not the version's", []func(*rbac){role("mine", "*"), binding("Role", "mine", boiler()...)}, []string{"role r", "binding r of r"}},
		"ClusterRole":  {"nor is a role of the cluster", []func(*rbac){binding("ClusterRole", "cluster-admin", boiler()...)}, []string{"role r", "binding r of r"}},
		"NameOfOne":    {"nor one of its name", []func(*rbac){role("cluster-admin", "*"), binding("Role", "cluster-admin", mallory)}, []string{"role r", "binding r of r"}},
		"NoSuchRole":   {"nor one that is not there", []func(*rbac){binding("Role", "cluster-admin", boiler()...)}, []string{"role r", "binding r of r"}},
		"User":         {"a user is not its account", []func(*rbac){binding("Role", "r", mallory)}, []string{"role r", "binding r of r"}},
		"Company":      {"nor in its company", []func(*rbac){binding("Role", "r", append(boiler(), mallory)...)}, []string{"role r", "binding r of r"}},
		"Account":      {"nor is another account", []func(*rbac){binding("Role", "r", rbacv1.Subject{Kind: "ServiceAccount", Namespace: "kitchen", Name: "mallory"})}, []string{"role r", "binding r of r"}},
		"Elsewhere":    {"nor one of its name elsewhere", []func(*rbac){binding("Role", "r", rbacv1.Subject{Kind: "ServiceAccount", Namespace: "pantry", Name: "boiler"})}, []string{"role r", "binding r of r"}},
		"Nobody":       {"a binding of nobody is none", []func(*rbac){binding("Role", "r")}, []string{"role r", "binding r of r"}},
		"Edited":       {"a role with more rules is not copied", []func(*rbac){edited}, nil},
		"Rebound":      {"nor a binding with more subjects", []func(*rbac){rebound}, []string{"role r"}},
		"EditedLater":  {"but what was copied before stays as it was", []func(*rbac){before, edited}, []string{"role r", "binding r of r"}},
		"ReboundLater": {"with its subjects", []func(*rbac){before, rebound}, []string{"role r", "binding r of r"}},
		"EditedBoth": {"if that is still as it was", []func(*rbac){before, edited, func(r *rbac) {
			r.ClusterRoles[0].Rules[0] = policy("*")
		}}, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			csv, r := boiling()
			for _, c := range tc.change {
				c(&r)
			}
			var got []string
			copies := desiredClusterRBAC(csv, true, r)
			for _, role := range copies.Roles {
				got = append(got, "role "+role.Name)
				if diff := cmp.Diff([]rbacv1.PolicyRule{policy("get"), readsNamespaces()}, role.Rules); diff != "" {
					t.Errorf("%s\nrules of %s: -want, +got:\n%s", tc.reason, role.Name, diff)
				}
			}
			for _, b := range copies.Bindings {
				got = append(got, "binding "+b.Name+" of "+b.RoleRef.Name)
				if diff := cmp.Diff(boiler(), b.Subjects); diff != "" {
					t.Errorf("%s\nsubjects of %s: -want, +got:\n%s", tc.reason, b.Name, diff)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\ndesiredClusterRBAC(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestCopiesNoCertificateRights has a role with declared rules under the name of the role for the
// certificate: it is not copied.
func TestCopiesNoCertificateRights(t *testing.T) {
	csv, r := boiling()
	csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs = hooked().Spec.InstallStrategy.StrategySpec.DeploymentSpecs
	csv.Spec.WebhookDefinitions = hooked().Spec.WebhookDefinitions[:1]
	servers, err := webhook.Servers(csv)
	if err != nil || len(servers) != 1 {
		t.Fatalf("servers %v, error %v", servers, err)
	}
	certificate := servers[0].SecretName()
	role, bound, both := r.Roles[0], r.RoleBindings[0], r.RoleBindings[0]
	role.Name, bound.Name = certificate, certificate
	both.Name, both.RoleRef.Name = "more", certificate
	r.Roles, r.RoleBindings = append(r.Roles, role), append(r.RoleBindings, bound, both)
	copies := desiredClusterRBAC(csv, true, r)
	if len(copies.Roles) != 1 || copies.Roles[0].Name != "r" {
		t.Errorf("roles %v, want r alone", copies.Roles)
	}
	if len(copies.Bindings) != 1 || copies.Bindings[0].Name != "r" {
		t.Errorf("bindings %v, want r alone", copies.Bindings)
	}
}
