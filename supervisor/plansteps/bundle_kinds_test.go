package plansteps

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// TestKindsOfPlans repeats the list of kinds that a bundle may contain. Objects of these kinds are applied with
// the supervisor's permissions, so a change must be made in both places.
func TestKindsOfPlans(t *testing.T) {
	t.Parallel()
	want := map[schema.GroupKind]Scope{
		{Group: "", Kind: "ConfigMap"}:                                    true,
		{Group: "", Kind: "Secret"}:                                       true,
		{Group: "", Kind: "Service"}:                                      true,
		{Group: "", Kind: "ServiceAccount"}:                               true,
		{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}: false,
		{Group: "autoscaling.k8s.io", Kind: "VerticalPodAutoscaler"}:      true,
		{Group: "console.openshift.io", Kind: "ConsoleCLIDownload"}:       false,
		{Group: "console.openshift.io", Kind: "ConsoleLink"}:              false,
		{Group: "console.openshift.io", Kind: "ConsolePlugin"}:            false,
		{Group: "console.openshift.io", Kind: "ConsoleQuickStart"}:        false,
		{Group: "console.openshift.io", Kind: "ConsoleYAMLSample"}:        false,
		{Group: "monitoring.coreos.com", Kind: "PrometheusRule"}:          true,
		{Group: "monitoring.coreos.com", Kind: "ServiceMonitor"}:          true,
		{Group: "networking.k8s.io", Kind: "NetworkPolicy"}:               true,
		{Group: "operators.coreos.com", Kind: "ClusterServiceVersion"}:    true,
		{Group: "policy", Kind: "PodDisruptionBudget"}:                    true,
		{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole"}:         false,
		{Group: "rbac.authorization.k8s.io", Kind: "ClusterRoleBinding"}:  false,
		{Group: "rbac.authorization.k8s.io", Kind: "Role"}:                true,
		{Group: "rbac.authorization.k8s.io", Kind: "RoleBinding"}:         true,
		{Group: "scheduling.k8s.io", Kind: "PriorityClass"}:               false,
	}
	if diff := cmp.Diff(Kinds(want), supported); diff != "" {
		t.Errorf("kinds that a plan may hold (-want +got):\n%s", diff)
	}
	for gk, scope := range want {
		if got, ok := Kinds(nil).ScopeOf(gk); !ok || got != scope {
			t.Errorf("ScopeOf(%s) = %v, %v", gk, got, ok)
		}
	}
	for _, gk := range []schema.GroupKind{
		{Group: "", Kind: "Pod"},
		{Group: "apps", Kind: "Deployment"},
		{Group: "admissionregistration.k8s.io", Kind: "ValidatingWebhookConfiguration"},
		{Group: "operators.coreos.com", Kind: "Subscription"},
		{Group: "operators.coreos.com", Kind: "OperatorGroup"},
		{Group: "example.com", Kind: "Secret"},
	} {
		if _, ok := Kinds(nil).ScopeOf(gk); ok {
			t.Errorf("a plan may hold objects of kind %s", gk)
		}
	}
}

// TestArgument checks the argument that adds a kind.
func TestArgument(t *testing.T) {
	t.Parallel()
	v1 := func(group, kind string) schema.GroupVersionKind {
		return schema.GroupVersionKind{Group: group, Version: "v1", Kind: kind}
	}
	served := apimeta.NewDefaultRESTMapper(nil)
	served.Add(v1("shop.example", "Widget"), apimeta.RESTScopeNamespace)
	served.Add(v1("shop.example", "Policy"), apimeta.RESTScopeRoot)
	served.Add(v1("", "Node"), apimeta.RESTScopeRoot)
	for gvk, want := range map[schema.GroupVersionKind]string{
		v1("shop.example", "Widget"):               "--bundle-kind=shop.example/Widget",
		v1("shop.example", "Policy"):               "--bundle-kind=shop.example/Policy:cluster",
		v1("shop.example", "Unserved"):             "--bundle-kind=shop.example/Unserved",
		v1("shop.example", "Role"):                 "",
		v1("operators.coreos.com", "Subscription"): "",
		v1("", "Pod"):                              "",
		v1("", "LimitRange"):                       "",
		v1("", "Node"):                             "",
	} {
		if got := Argument(gvk, served); got != want {
			t.Errorf("the argument for %s is %q, want %q", gvk, got, want)
		}
	}
}
