package supervisor

import (
	"strings"

	"github.com/gobuffalo/flect"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/plansteps"
)

// bundleKindsRole is the name of the role for added kinds.
const bundleKindsRole = "chandlery-supervisor-bundle-kinds"

// BundleKindPermissions returns the ClusterRole and the ClusterRoleBinding with which a service account may apply
// objects of added kinds. The names of the resources are the plurals that controller-gen uses by default, as the API server
// is not asked.
func BundleKindPermissions(kinds plansteps.Kinds, account types.NamespacedName) []client.Object {
	meta := metav1.ObjectMeta{Name: bundleKindsRole, Labels: map[string]string{"app.kubernetes.io/part-of": "chandlery"}}
	role := &rbacv1.ClusterRole{
		TypeMeta: metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRole"}, ObjectMeta: meta,
	}
	for _, gk := range kinds.Sorted() {
		resource := strings.ToLower(flect.Pluralize(gk.Kind))
		verbs := []string{"get", "list", "create", "update"}
		if kinds[gk] == plansteps.ClusterScoped {
			// Garbage collection does not delete cluster-scoped objects with their version.
			verbs = append(verbs, "delete")
		}
		role.Rules = append(role.Rules, rbacv1.PolicyRule{APIGroups: []string{gk.Group}, Resources: []string{resource}, Verbs: verbs})
	}
	return []client.Object{role, &rbacv1.ClusterRoleBinding{
		TypeMeta: metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRoleBinding"}, ObjectMeta: meta,
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: bundleKindsRole},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: account.Namespace, Name: account.Name}},
	}}
}
