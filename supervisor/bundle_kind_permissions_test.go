package supervisor

import (
	"slices"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chandlery/chandlery/supervisor/plansteps"
)

func TestBundleKindPermissions(t *testing.T) {
	t.Parallel()
	var kinds plansteps.Kinds
	if err := kinds.Set("shop.example/Widget,shop.example/Policy:cluster"); err != nil {
		t.Fatal(err)
	}
	objects := BundleKindPermissions(kinds, types.NamespacedName{Namespace: "system", Name: "manager"})
	role, isRole := objects[0].(*rbacv1.ClusterRole)
	binding, isBinding := objects[1].(*rbacv1.ClusterRoleBinding)
	if !isRole || !isBinding || len(role.Rules) != 2 {
		t.Fatalf("the objects are %v", objects)
	}
	policies, widgets := role.Rules[0], role.Rules[1]
	if !slices.Equal(policies.Resources, []string{"policies"}) || !slices.Contains(policies.Verbs, "delete") {
		t.Errorf("the rule for the cluster-scoped kind is %v", policies)
	}
	if !slices.Equal(widgets.Resources, []string{"widgets"}) || !slices.Equal(widgets.APIGroups, []string{"shop.example"}) || slices.Contains(widgets.Verbs, "delete") {
		t.Errorf("the rule for the namespaced kind is %v", widgets)
	}
	for kind, want := range map[string]string{"Gateway": "gateways", "Key": "keys", "Mesh": "meshes", "Box": "boxes", "Index": "indices", "Prometheus": "prometheuses", "DNS": "dnses", "ServiceEntry": "serviceentries"} {
		objects := BundleKindPermissions(plansteps.Kinds{{Group: "shop.example", Kind: kind}: plansteps.Namespaced}, types.NamespacedName{})
		role, _ := objects[0].(*rbacv1.ClusterRole)
		if got := role.Rules[0].Resources; !slices.Equal(got, []string{want}) {
			t.Errorf("the resource of %s is %v, want %s", kind, got, want)
		}
	}
	if binding.RoleRef.Name != role.Name || binding.Subjects[0].Namespace != "system" || binding.Subjects[0].Name != "manager" {
		t.Errorf("the binding is %v", binding)
	}
}
