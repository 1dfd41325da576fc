package operator

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/chandlery/chandlery/test/testenv/fixtures"
)

// TestKinds compares the Go types of all kinds with their GroupVersionKinds.
func TestKinds(t *testing.T) {
	scheme := fixtures.Scheme(t)
	seen := map[schema.GroupVersionKind]bool{}
	for _, k := range kinds() {
		object, err := apiutil.GVKForObject(k.object(), scheme)
		if err != nil {
			t.Fatal(err)
		}
		list, err := apiutil.GVKForObject(k.list(), scheme)
		if err != nil {
			t.Fatal(err)
		}
		if object != k.gvk || list != k.gvk.GroupVersion().WithKind(k.gvk.Kind+"List") || seen[k.gvk] {
			t.Errorf("%s is read as %s and %s", k.gvk, object, list)
		}
		seen[k.gvk] = true
		if k.managed && k.typed != nil {
			t.Errorf("objects of kind %s have a cache of their own and a Go type", k.gvk.Kind)
		}
		if shown := k.typed != nil && len(conditionsOf(k.object())) > 0; shown {
			t.Errorf("a new %s has conditions", k.gvk.Kind)
		}
	}
	var names []string
	for gvk := range seen {
		names = append(names, gvk.Kind)
	}
	for _, want := range []string{
		"APIService", "ClusterRole", "ClusterRoleBinding", "ClusterServiceVersion", "ConfigMap", "CustomResourceDefinition", "Deployment", "InstallPlan",
		"Namespace", "OperatorCondition", "Role", "RoleBinding", "Secret", "Service", "ServiceAccount", "Subscription",
	} {
		if !slices.Contains(names, want) {
			t.Errorf("no component can be a %s", want)
		}
	}
}
