package timeline

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestExplain(t *testing.T) {
	t.Parallel()
	pending := csv(operatorsv1alpha1.CSVPhasePending, "RequirementsNotMet", "one or more requirements couldn't be found")
	pending.Status.RequirementStatus = []operatorsv1alpha1.RequirementStatus{
		{Kind: "CustomResourceDefinition", Name: "there", Status: operatorsv1alpha1.RequirementStatusReasonPresent},
		{Kind: "ServiceAccount", Name: "sa", Status: operatorsv1alpha1.RequirementStatusReasonPresentNotSatisfied, Dependents: []operatorsv1alpha1.DependentStatus{
			{Kind: "PolicyRule", Status: operatorsv1alpha1.DependentStatusReasonSatisfied},
			{Kind: "PolicyRule", Status: operatorsv1alpha1.DependentStatusReasonNotSatisfied, Message: "cannot get pods"},
		}},
	}
	waiting := deployment(nil, 1, 0, 1)
	waiting.Namespace = "ns"
	waiting.Status.Conditions = []appsv1.DeploymentCondition{{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionFalse, Reason: "ProgressDeadlineExceeded"}}
	cases := map[string]struct {
		reason string
		object client.Object
		want   []string
	}{
		"Catalog": {"the address and the state of the connection", catalog("TRANSIENT_FAILURE", ""), []string{
			"CatalogSource /sample at : connection TRANSIENT_FAILURE ",
		}},
		"Subscription": {"every condition, whatever its status", subscription("", "", "", operatorsv1alpha1.SubscriptionCondition{
			Type: operatorsv1alpha1.SubscriptionResolutionFailed, Status: corev1.ConditionFalse, Reason: "r", Message: "m",
		}), []string{
			`Subscription /a: state "", installed "", current ""`, "  ResolutionFailed=False r: m",
		}},
		"Plan": {"the steps that are not done", plan(operatorsv1alpha1.InstallPlanPhaseInstalling, operatorsv1alpha1.StepStatusCreated, operatorsv1alpha1.StepStatusUnknown), []string{
			`InstallPlan /install-1: phase "Installing", approved false `, "  step Role a: Unknown",
		}},
		"CSV": {"the requirements that are not met", pending, []string{
			`ClusterServiceVersion /a.v1: phase "Pending" RequirementsNotMet: one or more requirements couldn't be found`,
			"  ServiceAccount sa=PresentNotSatisfied", "    PolicyRule=NotSatisfied cannot get pods",
		}},
		"Deployment": {"its conditions", waiting, []string{"Deployment ns/op: 0 of 1 available", "  Progressing=False ProgressDeadlineExceeded"}},
		"Other":      {"nothing is known of other kinds", &corev1.Pod{}, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, Explain(tc.object)); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}
