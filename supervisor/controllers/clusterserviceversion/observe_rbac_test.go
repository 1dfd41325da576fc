package clusterserviceversion

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/chandlery/chandlery/supervisor/api"
)

// TestReadRBAC reads the objects that concern the versions of one namespace, and no others.
func TestReadRBAC(t *testing.T) {
	role := func(name string, labels map[string]string) *rbacv1.ClusterRole {
		return &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
	}
	binding := func(name, role string, labels map[string]string, subjects ...rbacv1.Subject) *rbacv1.ClusterRoleBinding {
		return &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}, Subjects: subjects,
			RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: role},
		}
	}
	account := func(namespace string) rbacv1.Subject {
		return rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: "cook"}
	}
	ours, theirs := map[string]string{api.LabelOwner: "kettle.v1", api.LabelOwnerNamespace: "kitchen"}, map[string]string{api.LabelOwner: "kettle.v1", api.LabelOwnerNamespace: "garden"}
	for reason, tc := range map[string]struct {
		objects  []client.Object
		roles    []string
		bindings []string
	}{
		"an account that is bound": {
			objects: []client.Object{role("r", nil), binding("b", "r", nil, account("garden"), account("kitchen"))},
			roles:   []string{"r"}, bindings: []string{"b"},
		},
		"an account of another namespace": {
			objects: []client.Object{role("r", nil), binding("b", "r", nil, account("garden"))},
		},
		"an account as a user": {
			objects:  []client.Object{binding("b", "gone", nil, rbacv1.Subject{Kind: rbacv1.UserKind, Name: "system:serviceaccount:kitchen:cook"})},
			bindings: []string{"b"},
		},
		"all accounts": {
			objects: []client.Object{role("r", nil), binding("b", "r", nil, rbacv1.Subject{Kind: rbacv1.GroupKind, Name: "system:authenticated"})},
			roles:   []string{"r"}, bindings: []string{"b"},
		},
		"owned by a version of the namespace": {
			objects: []client.Object{role("r", ours), binding("b", "r", ours, account("garden"))},
			roles:   []string{"r"}, bindings: []string{"b"},
		},
		"owned by a version of another namespace": {
			objects: []client.Object{role("r", theirs), binding("b", "r", theirs, account("garden"))},
		},
		"as a Role and a RoleBinding of a version are named": {
			objects: []client.Object{
				role("r", theirs), binding("b", "r", theirs),
				&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: "kitchen", Name: "r", Labels: ours}},
				&rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "kitchen", Name: "b", Labels: ours}},
			},
			roles: []string{"r"}, bindings: []string{"b"},
		},
		"referred to by a RoleBinding": {
			objects: []client.Object{
				role("r", nil), role("s", nil),
				&rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "kitchen", Name: "b"}, RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: "r"}},
			},
			roles: []string{"r"},
		},
	} {
		t.Run(reason, func(t *testing.T) {
			c := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithObjects(tc.objects...).
				WithIndex(&rbacv1.ClusterRole{}, indexNamespace, namespaceKeys).
				WithIndex(&rbacv1.ClusterRoleBinding{}, indexNamespace, namespaceKeys).Build()
			found, err := rbacReader{cached: c, live: c}.read(t.Context(), "kitchen")
			if err != nil {
				t.Fatal(err)
			}
			var roles, bindings []string
			for _, r := range found.ClusterRoles {
				roles = append(roles, r.Name)
			}
			for _, b := range found.ClusterRoleBindings {
				bindings = append(bindings, b.Name)
			}
			if diff := cmp.Diff([][]string{tc.roles, tc.bindings}, [][]string{roles, bindings}); diff != "" {
				t.Errorf("ClusterRoles and ClusterRoleBindings (-want +got):\n%s", diff)
			}
		})
	}
}
