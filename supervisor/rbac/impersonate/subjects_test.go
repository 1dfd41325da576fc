package impersonate_test

import (
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/rbac/impersonate"
)

func TestIsBound(t *testing.T) {
	for name, tt := range map[string]struct {
		subject rbacv1.Subject
		want    bool
	}{
		"itself":                  {rbacv1.Subject{Kind: "ServiceAccount", Namespace: "ops", Name: "installer"}, true},
		"of another namespace":    {rbacv1.Subject{Kind: "ServiceAccount", Namespace: "dev", Name: "installer"}, false},
		"another":                 {rbacv1.Subject{Kind: "ServiceAccount", Namespace: "ops", Name: "other"}, false},
		"as a user":               {rbacv1.Subject{Kind: "User", Name: "system:serviceaccount:ops:installer"}, true},
		"a person":                {rbacv1.Subject{Kind: "User", Name: "installer"}, false},
		"all accounts":            {rbacv1.Subject{Kind: "Group", Name: "system:serviceaccounts"}, true},
		"all of its namespace":    {rbacv1.Subject{Kind: "Group", Name: "system:serviceaccounts:ops"}, true},
		"all of another":          {rbacv1.Subject{Kind: "Group", Name: "system:serviceaccounts:dev"}, false},
		"all authenticated users": {rbacv1.Subject{Kind: "Group", Name: "system:authenticated"}, true},
		"an unknown kind":         {rbacv1.Subject{Kind: "Robot", Name: "system:authenticated"}, false},
	} {
		binding := &rbacv1.RoleBinding{Subjects: []rbacv1.Subject{tt.subject}}
		subjects, bound := impersonate.Subjects(binding)
		if !bound {
			t.Fatal("a binding has no subjects")
		}
		if got := impersonate.IsBound(subjects, "ops", "installer"); got != tt.want {
			t.Errorf("%s: bound is %t, want %t", name, got, tt.want)
		}
		// An index by namespace finds each subject that binds an account.
		if namespace, all := impersonate.SubjectNamespace(tt.subject); tt.want && !all && namespace != "ops" {
			t.Errorf("%s: namespace %q, want ops or all", name, namespace)
		}
	}
	for _, role := range []client.Object{&rbacv1.Role{}, &rbacv1.ClusterRole{}} {
		if _, bound := impersonate.Subjects(role); bound {
			t.Errorf("%T has subjects", role)
		}
	}
}
