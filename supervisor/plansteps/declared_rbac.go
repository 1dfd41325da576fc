package plansteps

import (
	"slices"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

// defaultAccount is the account of permissions that name none.
const defaultAccount = "default"

// DeclaredFor returns the service accounts for which a version requests exactly these rules in its namespace.
// Labels alone do not prove that a Role belongs to the version: any user who may create Roles there can set
// them.
func DeclaredFor(csv *operatorsv1alpha1.ClusterServiceVersion, rules []rbacv1.PolicyRule) []string {
	var accounts []string
	for _, p := range csv.Spec.InstallStrategy.StrategySpec.Permissions {
		if !equality.Semantic.DeepEqual(p.Rules, rules) {
			continue
		}
		account := p.ServiceAccountName
		if account == "" {
			account = defaultAccount
		}
		accounts = append(accounts, account)
	}
	return accounts
}

// BindsRole reports whether a binding grants a Role of its namespace only to the named service accounts of that
// namespace.
func BindsRole(b *rbacv1.RoleBinding, accounts []string) bool {
	return b.RoleRef.Kind == "Role" && b.RoleRef.APIGroup == rbacv1.GroupName && AreAccounts(b.Subjects, b.Namespace, accounts)
}

// AreAccounts reports whether all subjects, of which there is at least one, are named service accounts of a
// namespace.
func AreAccounts(subjects []rbacv1.Subject, namespace string, accounts []string) bool {
	return len(subjects) > 0 && !slices.ContainsFunc(subjects, func(s rbacv1.Subject) bool {
		return s.Kind != rbacv1.ServiceAccountKind || s.Namespace != namespace || !slices.Contains(accounts, s.Name)
	})
}
