package plansteps

import (
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestBindsRole has bindings in the namespace home, where a version declares the account lamp. The subjects of a
// binding that is too large for the cache are missing.
func TestBindsRole(t *testing.T) {
	account := func(namespace, name string) rbacv1.Subject {
		return rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: name}
	}
	lamp := account("home", "lamp")
	role := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "lamp"}
	wide, other := role, role
	wide.Kind, other.APIGroup = "ClusterRole", "other.example"
	for name, tc := range map[string]struct {
		reason   string
		role     rbacv1.RoleRef
		subjects []rbacv1.Subject
		want     bool
	}{
		"Declared":     {"the version declares the account", role, []rbacv1.Subject{lamp}, true},
		"Twice":        {"the account is named twice", role, []rbacv1.Subject{lamp, lamp}, true},
		"NoSubjects":   {"the subjects are unknown", role, nil, false},
		"Beside":       {"another account has the Role too", role, []rbacv1.Subject{lamp, account("home", "tray")}, false},
		"Undeclared":   {"the version does not declare the account", role, []rbacv1.Subject{account("home", "tray")}, false},
		"Elsewhere":    {"an account of another namespace has that name", role, []rbacv1.Subject{account("other", "lamp")}, false},
		"User":         {"a user has that name", role, []rbacv1.Subject{{Kind: rbacv1.UserKind, Namespace: "home", Name: "lamp"}}, false},
		"ClusterRole":  {"the binding is of a ClusterRole", wide, []rbacv1.Subject{lamp}, false},
		"UnknownGroup": {"the role is of another API group", other, []rbacv1.Subject{lamp}, false},
	} {
		b := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "home", Name: "lamp"}, RoleRef: tc.role, Subjects: tc.subjects}
		if got := BindsRole(b, []string{"lamp", "default"}); got != tc.want {
			t.Errorf("%s: %s: %t, want %t", name, tc.reason, got, tc.want)
		}
	}
}
