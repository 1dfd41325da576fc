package plansteps

import (
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/api"
)

// maxRBACName is the maximum length of generated names of roles and bindings. It is below the limit of the API,
// so that the name also fits into a label.
const maxRBACName = 63

// permissions returns the service accounts, roles and bindings of a ClusterServiceVersion's install strategy,
// in the order of creation.
func permissions(csv *operatorsv1alpha1.ClusterServiceVersion) []client.Object {
	strategy := csv.Spec.InstallStrategy.StrategySpec
	objects := serviceAccounts(csv)
	for _, p := range strategy.Permissions {
		name := rbacName(csv.Name+"-"+p.ServiceAccountName, hash([]any{csv.Name, p}))
		meta := ownedMeta(csv, name, csv.Namespace, p.Rules)
		objects = append(objects,
			&rbacv1.Role{TypeMeta: rbacType("Role"), ObjectMeta: meta, Rules: p.Rules},
			&rbacv1.RoleBinding{
				TypeMeta: rbacType("RoleBinding"), ObjectMeta: meta,
				RoleRef:  rbacv1.RoleRef{APIGroup: groupRBAC, Kind: "Role", Name: name},
				Subjects: subject(p.ServiceAccountName, csv.Namespace),
			})
	}
	for _, p := range strategy.ClusterPermissions {
		name := rbacName(csv.Name, hash([]any{csv.Name, csv.Namespace, p}))
		meta := ownedMeta(csv, name, "", p.Rules)
		objects = append(objects,
			&rbacv1.ClusterRole{TypeMeta: rbacType("ClusterRole"), ObjectMeta: meta, Rules: p.Rules},
			&rbacv1.ClusterRoleBinding{
				TypeMeta: rbacType("ClusterRoleBinding"), ObjectMeta: meta,
				RoleRef:  rbacv1.RoleRef{APIGroup: groupRBAC, Kind: "ClusterRole", Name: name},
				Subjects: subject(p.ServiceAccountName, csv.Namespace),
			})
	}
	return objects
}

// serviceAccounts returns each account that the strategy names, once. Every namespace has the account
// "default", so it is omitted.
func serviceAccounts(csv *operatorsv1alpha1.ClusterServiceVersion) []client.Object {
	strategy := csv.Spec.InstallStrategy.StrategySpec
	seen := map[string]bool{"": true, defaultAccount: true}
	var objects []client.Object
	for _, list := range [][]operatorsv1alpha1.StrategyDeploymentPermissions{strategy.Permissions, strategy.ClusterPermissions} {
		for _, p := range list {
			if seen[p.ServiceAccountName] {
				continue
			}
			seen[p.ServiceAccountName] = true
			objects = append(objects, &corev1.ServiceAccount{
				TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ServiceAccount"},
				ObjectMeta: metav1.ObjectMeta{Name: p.ServiceAccountName, Namespace: csv.Namespace, Labels: map[string]string{api.LabelManaged: "true"}},
			})
		}
	}
	return objects
}

// rbacName joins a base and a hash. It cuts the base so that the name fits.
func rbacName(base, hash string) string {
	if room := maxRBACName - len(hash) - 1; len(base) > room {
		base = base[:room]
	}
	return base + "-" + hash
}

func ownedMeta(csv *operatorsv1alpha1.ClusterServiceVersion, name, namespace string, rules []rbacv1.PolicyRule) metav1.ObjectMeta {
	labels := OwnerLabels(csv.Name, csv.Namespace)
	labels[api.LabelPermissionsHash] = hash(rules)
	return metav1.ObjectMeta{Name: name, Namespace: namespace, Labels: labels}
}

func rbacType(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: kind}
}

func subject(serviceAccount, namespace string) []rbacv1.Subject {
	if serviceAccount == "" {
		serviceAccount = defaultAccount
	}
	return []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: serviceAccount, Namespace: namespace}}
}
