package clusterserviceversion

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chandlery/chandlery/supervisor/controllers/clusterserviceversion/phase"
	"github.com/chandlery/chandlery/supervisor/controllers/clusterserviceversion/versions"
	csvwebhook "github.com/chandlery/chandlery/supervisor/controllers/clusterserviceversion/webhook"
	"github.com/chandlery/chandlery/supervisor/webhook"
)

// asOwner returns an owner of cups with an age.
func asOwner(name string, age time.Duration) *operatorsv1alpha1.ClusterServiceVersion {
	csv := version(name, "", succeeded)
	csv.UID += "-of-another"
	csv.CreationTimestamp = metav1.NewTime(noon().Add(-age))
	csv.Spec.CustomResourceDefinitions.Owned = []operatorsv1alpha1.CRDDescription{{Name: "cups.example.com", Version: "v1", Kind: "Cup"}}
	return csv
}

// needing checks the requirements of a changed version.
func needing(c cluster, change func(*operatorsv1alpha1.ClusterServiceVersion)) func(*phase.Input) {
	return func(o *phase.Input) {
		change(o.CSV)
		o.CSV.Labels = phase.Labels(o.CSV, &o.Groups[0])
		o.Requirements = requirements(o.CSV, c)
	}
}

func owningCups(csv *operatorsv1alpha1.ClusterServiceVersion) {
	csv.CreationTimestamp = metav1.NewTime(noon())
	csv.Spec.CustomResourceDefinitions.Owned = asOwner("", 0).Spec.CustomResourceDefinitions.Owned
}

// servingWith sets the state of the invalid webhooks of a changed version.
func servingWith(change func(*operatorsv1alpha1.ClusterServiceVersion)) func(*phase.Input) {
	observer, _ := csvwebhook.New(csvwebhook.Options{})
	return func(o *phase.Input) {
		o.CSV.Spec.WebhookDefinitions = hooked().Spec.WebhookDefinitions[:2]
		o.CSV.Spec.InstallStrategy = hooked().Spec.InstallStrategy
		change(o.CSV)
		if _, seen, err := observer.Observe(context.Background(), csvwebhook.Version{CSV: o.CSV}); err == nil {
			o.Webhooks = seen
		}
	}
}

// TestBadInput checks, for errors in a version or its environment, the phase, the message and the detail.
// They name the object, the field, and the remedy. No other action follows.
func TestBadInput(t *testing.T) {
	grants := rbac{
		Roles:        []rbacv1.Role{{ObjectMeta: metav1.ObjectMeta{Name: "r"}, Rules: []rbacv1.PolicyRule{policy("get")}}},
		RoleBindings: []rbacv1.RoleBinding{{RoleRef: rbacv1.RoleRef{Kind: "Role", Name: "r"}, Subjects: boiler()}},
	}
	asksFor := func(csv *operatorsv1alpha1.ClusterServiceVersion) {
		csv.Spec.InstallStrategy.StrategySpec.Permissions = []operatorsv1alpha1.StrategyDeploymentPermissions{
			{ServiceAccountName: "boiler", Rules: []rbacv1.PolicyRule{policy("get"), policy("delete")}},
		}
	}
	account := accountsByName{"boiler": {ObjectMeta: metav1.ObjectMeta{Name: "boiler"}}}
	theirs := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "kitchen", Name: "kettle"}}
	circle := versions.List{version("kettle.v1", "kettle.v2", pending), version("kettle.v2", "kettle.v1", pending)}
	circle[0].CreationTimestamp = metav1.NewTime(noon())
	nothing := func(*operatorsv1alpha1.ClusterServiceVersion) {}
	cases := map[string]struct {
		change func(*phase.Input)
		phase  operatorsv1alpha1.ClusterServiceVersionPhase
		reason operatorsv1alpha1.ConditionReason
		says   []string
	}{
		"NoDeployments": {func(o *phase.Input) {
			o.CSV.Spec.InstallStrategy.StrategySpec.DeploymentSpecs = nil
		}, broken, "InvalidInstallStrategy", []string{"spec.install.spec.deployments is empty", "add at least one Deployment"}},
		"UnnamedDeployment": {func(o *phase.Input) {
			o.CSV.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0].Name = ""
		}, broken, "InvalidInstallStrategy", []string{"spec.install.spec.deployments[0].name", "give each Deployment a name of its own"}},
		"UnknownStrategy": {func(o *phase.Input) {
			o.CSV.Spec.InstallStrategy.StrategyName = "helm"
		}, broken, "InvalidInstallStrategy", []string{`spec.install.strategy is "helm"`, `set it to "deployment"`}},
		"NoAccount": {
			needing(cluster{}, asksFor), pending, "RequirementsNotMet", []string{"ServiceAccount boiler: Service account does not exist"},
		},
		"PermissionsNotGranted": {
			needing(cluster{Accounts: account, RBAC: grants}, asksFor), pending, "RequirementsNotMet", []string{
				"ServiceAccount boiler: Policy rule not satisfied for service account", "namespaced rule:", `"delete"`, `"pods"`,
			},
		},
		"WebhooksOfOneName": {servingWith(func(csv *operatorsv1alpha1.ClusterServiceVersion) {
			csv.Spec.WebhookDefinitions[1] = csv.Spec.WebhookDefinitions[0]
		}), broken, "InvalidWebhookDescription", []string{"spec.webhookdefinitions[1].generateName", "spec.webhookdefinitions[0] has the name", "give each webhook a name of its own"}},
		"WebhookOfAnother": {func(o *phase.Input) {
			o.CSV.Status.Phase = installs
			o.Components.OwnerConflict = webhook.ConflictMessage("ValidatingWebhookConfiguration", "check", "csv kitchen/pot.v1")
		}, broken, "InstallComponentFailed", []string{
			`ValidatingWebhookConfiguration "check" exists and belongs to csv kitchen/pot.v1`, "delete or rename one of the two",
		}},
		"CRDOwnedByTwo": {
			needing(cluster{CRDs: crdsByName{"cups.example.com": cup()}, Others: versions.List{asOwner("pot.v1", time.Hour)}}, owningCups),
			broken, "OwnerConflict",
			[]string{"spec.customresourcedefinitions.owned names cups.example.com", "csv pot.v1", "remove one of the two"},
		},
		"CRDWithoutGroup": {needing(cluster{}, func(csv *operatorsv1alpha1.ClusterServiceVersion) {
			csv.Spec.CustomResourceDefinitions.Required = []operatorsv1alpha1.CRDDescription{{Name: "cups", Version: "v1", Kind: "Cup"}}
		}), pending, "RequirementsNotMet", []string{"CustomResourceDefinition cups: CRD is not present"}},
		"CRDVersionNotServed": {needing(cluster{CRDs: crdsByName{"cups.example.com": cup()}}, func(csv *operatorsv1alpha1.ClusterServiceVersion) {
			owningCups(csv)
			csv.Spec.CustomResourceDefinitions.Owned[0].Version = "example.com/v1"
		}), pending, "RequirementsNotMet", []string{"CustomResourceDefinition cups.example.com: CRD version not served"}},
		"ReplacesNobody": {func(o *phase.Input) {
			o.Replacement = phase.ReplacementOf(version("kettle.v1", "never", pending), nil)
		}, ready, "AllRequirementsMet", []string{"spec.replaces names csv never, which is not in this namespace", "nothing is replaced"}},
		"ReplacesItself": {func(o *phase.Input) {
			o.CSV.Spec.Replaces = "kettle.v1"
			o.Replacement = phase.ReplacementOf(o.CSV, versions.List{o.CSV})
		}, ready, "AllRequirementsMet", []string{"spec.replaces names this version itself", "nothing is replaced"}},
		"Circle": {func(o *phase.Input) {
			o.Replacement = phase.ReplacementOf(circle[0], circle)
			o.Replacement.Predecessor.Phase = replacing
		}, ready, "AllRequirementsMet", []string{"spec.replaces forms a cycle (kettle.v1, kettle.v2)", "the youngest version replaces the others"}},
		"ForeignDeployment": {func(o *phase.Input) {
			o.CSV.Status.Phase = ready
			desired, err := desiredDeployments(o.CSV, settings{}, func(*appsv1.Deployment) {}, podAnnotations)
			if err != nil {
				t.Fatal(err)
			}
			o.Components = components(o.CSV, desired, map[string]*appsv1.Deployment{"kettle": theirs}, nil, "")
		}, broken, "InstallComponentFailed", []string{`deployment "kettle" exists and belongs to no ClusterServiceVersion`, "delete or rename one of the two"}},
		"ForeignRole": {func(o *phase.Input) {
			o.CSV.Status.Phase = ready
			want := clusterRBAC{Roles: []*rbacv1.ClusterRole{{ObjectMeta: metav1.ObjectMeta{Name: "r"}}}}
			o.ClusterRBAC = clusterRBACState(o.CSV, want, rbac{ClusterRoles: []rbacv1.ClusterRole{{ObjectMeta: metav1.ObjectMeta{Name: "r"}}}},
				func(map[string]string) bool { return true })
		}, broken, "InstallComponentFailed", []string{`ClusterRole "r" exists and belongs to no ClusterServiceVersion`, "delete or rename one of the two"}},
		"Nothing": {servingWith(nothing), ready, "AllRequirementsMet", nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o := good(pending, "RequirementsUnknown", tc.change)
			got := phase.Next(o)
			if got.Phase != tc.phase || got.Reason != tc.reason || len(got.Actions) > 0 {
				t.Errorf("phase.Next(...) = %+v, want phase %s, reason %s and no actions", got, tc.phase, tc.reason)
			}
			texts := []string{got.Message}
			if got.Cause != nil {
				texts = append(texts, got.Cause.Detail)
			}
			for _, s := range o.Requirements.Statuses {
				texts = append(texts, fmt.Sprintf("%s %s: %s %v", s.Kind, s.Name, s.Message, s.Dependents))
			}
			told := strings.Join(texts, "; ")
			missing := slices.DeleteFunc(slices.Clone(tc.says), func(text string) bool { return strings.Contains(told, text) })
			if len(missing) > 0 {
				t.Errorf("the message, the detail and the requirements %q do not contain %q", told, missing)
			}
		})
	}
}
