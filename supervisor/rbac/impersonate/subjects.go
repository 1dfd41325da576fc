package impersonate

import (
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/informer"
)

// Subjects returns the subjects of a RoleBinding or ClusterRoleBinding. bound is false for a role, and for a
// binding whose subjects a cache lacks.
func Subjects(o client.Object) (subjects []rbacv1.Subject, bound bool) {
	if informer.Trimmed(o) {
		return nil, false
	}
	switch b := o.(type) {
	case *rbacv1.RoleBinding:
		return b.Subjects, true
	case *rbacv1.ClusterRoleBinding:
		return b.Subjects, true
	default:
		return nil, false
	}
}

// IsBound reports whether one of the subjects is a ServiceAccount: directly, as a user, or through a group of all
// ServiceAccounts of its namespace.
func IsBound(subjects []rbacv1.Subject, namespace, account string) bool {
	return slices.ContainsFunc(subjects, func(s rbacv1.Subject) bool {
		switch s.Kind {
		case rbacv1.ServiceAccountKind:
			return s.Name == account && s.Namespace == namespace
		case rbacv1.UserKind:
			return s.Name == serviceaccount.MakeUsername(namespace, account)
		case rbacv1.GroupKind:
			return s.Name == user.AllAuthenticated || slices.Contains(serviceaccount.MakeGroupNames(namespace), s.Name)
		}
		return false
	})
}

// SubjectNamespace returns the namespace whose ServiceAccounts a subject may be, as Bound reports it. If all is true,
// they may be those of every namespace. It returns an empty name and false for a subject that is not a
// ServiceAccount.
func SubjectNamespace(s rbacv1.Subject) (namespace string, all bool) {
	switch s.Kind {
	case rbacv1.ServiceAccountKind:
		return s.Namespace, false
	case rbacv1.UserKind:
		if namespace, _, err := serviceaccount.SplitUsername(s.Name); err == nil {
			return namespace, false
		}
	case rbacv1.GroupKind:
		if s.Name == user.AllAuthenticated || s.Name == serviceaccount.AllServiceAccountsGroup {
			return "", true
		}
		if namespace, of := strings.CutPrefix(s.Name, serviceaccount.ServiceAccountGroupPrefix); of {
			return namespace, false
		}
	}
	return "", false
}
