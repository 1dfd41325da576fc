package plan

import (
	"slices"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

// defaultAccount is whose permissions are meant where a version names no account.
const defaultAccount = "default"

// DeclaredFor returns the service accounts for which a version asks for just these rules
// in its namespace. Labels alone do not make a Role one of the version's: whoever may
// make Roles there can give them to his own.
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

// BindsRole says whether a binding gives a Role of its namespace to service accounts of
// that namespace which are among those named, and to nobody else.
func BindsRole(b *rbacv1.RoleBinding, accounts []string) bool {
	return b.RoleRef.Kind == "Role" && b.RoleRef.APIGroup == rbacv1.GroupName && AreAccounts(b.Subjects, b.Namespace, accounts)
}

// AreAccounts says whether subjects, of which there are some, are service accounts of a
// namespace that are among those named.
func AreAccounts(subjects []rbacv1.Subject, namespace string, accounts []string) bool {
	return len(subjects) > 0 && !slices.ContainsFunc(subjects, func(s rbacv1.Subject) bool {
		return s.Kind != rbacv1.ServiceAccountKind || s.Namespace != namespace || !slices.Contains(accounts, s.Name)
	})
}
