package plansummary_test

import (
	"testing"

	"github.com/blang/semver/v4"
	"github.com/google/go-cmp/cmp"
	"github.com/operator-framework/api/pkg/lib/version"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chandlery/chandlery/cmd/internal/plansummary"
)

func step(kind, name, manifest string) *operatorsv1alpha1.Step {
	return &operatorsv1alpha1.Step{Resource: operatorsv1alpha1.StepResource{Kind: kind, Name: name, Manifest: manifest}}
}

// present returns the installed version.
func present(namespace string) operatorsv1alpha1.ClusterServiceVersion {
	v := operatorsv1alpha1.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "lamp.v1"}}
	v.Spec.Version = version.OperatorVersion{Version: semver.MustParse("1.0.0")}
	v.Spec.CustomResourceDefinitions.Owned = []operatorsv1alpha1.CRDDescription{{Name: "lamps.example.com"}}
	v.Spec.InstallStrategy.StrategySpec.ClusterPermissions = []operatorsv1alpha1.StrategyDeploymentPermissions{{
		Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"list", "get"}}},
	}}
	return v
}

func TestOf(t *testing.T) {
	t.Parallel()
	const reference = `{"kind":"BundleObject","package":"lamp","sha256":"00"}`
	for name, tt := range map[string]struct {
		reason  string
		present []operatorsv1alpha1.ClusterServiceVersion
		steps   []*operatorsv1alpha1.Step
		want    plansummary.Summary
	}{
		"Planning": {
			reason: "before the steps are known, the name alone says which version it is",
			want:   plansummary.Summary{Versions: []plansummary.Version{{Name: "lamp.v2", Version: "2"}}},
		},
		"Update": {
			reason:  "an update is seen beside what is there: only what is new is told",
			present: []operatorsv1alpha1.ClusterServiceVersion{present("shop")},
			steps: []*operatorsv1alpha1.Step{
				step("ClusterServiceVersion", "lamp.v2", `{"spec":{"version":"2.0.0","replaces":"lamp.v1"}}`),
				step("CustomResourceDefinition", "lamps.example.com", `{}`),
				step("CustomResourceDefinition", "wicks.example.com", reference),
				step("ClusterRole", "a", `{"rules":[{"apiGroups":[""],"resources":["pods"],"verbs":["get","list"]},{"apiGroups":["apps"],"resources":["deployments/scale"],"verbs":["*"]}]}`),
				step("ClusterRole", "b", `{"rules":[{"nonResourceURLs":["/metrics"],"verbs":["get"]},{"apiGroups":[""],"resources":["secrets"],"resourceNames":["x"],"verbs":["get"]}]}`),
			},
			want: plansummary.Summary{
				Versions:     []plansummary.Version{{Name: "lamp.v2", Version: "2.0.0", Replaces: "lamp.v1", From: "1.0.0"}},
				Definitions:  []plansummary.Definition{{Name: "lamps.example.com"}, {Name: "wicks.example.com", New: true}},
				ClusterRules: []string{"* deployments.apps/scale", "get of /metrics", "get secrets named x"},
				Objects:      5, Unread: 1,
			},
		},
		"Elsewhere": {
			reason:  "what is there of other namespaces is another operator",
			present: []operatorsv1alpha1.ClusterServiceVersion{present("other")},
			steps: []*operatorsv1alpha1.Step{
				step("ClusterServiceVersion", "lamp.v2", `{"spec":{"version":"2.0.0","replaces":"lamp.v1"}}`),
				step("CustomResourceDefinition", "lamps.example.com", `{}`),
			},
			want: plansummary.Summary{
				Versions: []plansummary.Version{{Name: "lamp.v2", Version: "2.0.0"}}, Definitions: []plansummary.Definition{{Name: "lamps.example.com", New: true}}, Objects: 2,
			},
		},
		"Broken": {
			reason: "what cannot be read is counted",
			steps:  []*operatorsv1alpha1.Step{nil, step("ClusterRole", "a", `{"rules":3}`), step("ClusterRole", "b", `{`)},
			want:   plansummary.Summary{Versions: []plansummary.Version{{Name: "lamp.v2", Version: "2"}}, Objects: 3, Unread: 2},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := &operatorsv1alpha1.InstallPlan{
				ObjectMeta: metav1.ObjectMeta{
					Namespace: "shop", Name: "install-a", Annotations: map[string]string{"chandlery.dev/serves-1": "my-lamp"},
					OwnerReferences: []metav1.OwnerReference{{Kind: "Subscription", Name: "my-lamp"}, {Kind: "Subscription", Name: "another"}, {Kind: "ConfigMap", Name: "x"}},
				},
				Spec:   operatorsv1alpha1.InstallPlanSpec{ClusterServiceVersionNames: []string{"lamp.v2"}},
				Status: operatorsv1alpha1.InstallPlanStatus{Phase: operatorsv1alpha1.InstallPlanPhaseRequiresApproval, Plan: tt.steps},
			}
			tt.want.Namespace, tt.want.InstallPlan, tt.want.Phase = "shop", "install-a", "RequiresApproval"
			tt.want.Subscriptions = []string{"another", "my-lamp"}
			if diff := cmp.Diff(tt.want, plansummary.Of(p, tt.present)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tt.reason, diff)
			}
		})
	}
}
