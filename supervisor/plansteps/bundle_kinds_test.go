package plansteps

import (
	"testing"

	"github.com/google/go-cmp/cmp"
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
