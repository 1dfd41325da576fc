package scale

import (
	"testing"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestStateOfOLM(t *testing.T) {
	version := func(phase operatorsv1alpha1.ClusterServiceVersionPhase, labels map[string]string) client.Object {
		return &operatorsv1alpha1.ClusterServiceVersion{
			ObjectMeta: metav1.ObjectMeta{Labels: labels}, Status: operatorsv1alpha1.ClusterServiceVersionStatus{Phase: phase},
		}
	}
	plan := func(phase operatorsv1alpha1.InstallPlanPhase) client.Object {
		return &operatorsv1alpha1.InstallPlan{Status: operatorsv1alpha1.InstallPlanStatus{Phase: phase}}
	}
	copied := map[string]string{operatorsv1alpha1.CopiedLabelKey: "elsewhere"}
	cases := map[string]struct {
		reason string
		wanted func(client.Object) bool
		object client.Object
		want   bool
	}{
		"Complete":  {reason: "The plan is Complete.", wanted: isComplete, object: plan(operatorsv1alpha1.InstallPlanPhaseComplete), want: true},
		"Running":   {reason: "Steps are left.", wanted: isComplete, object: plan(operatorsv1alpha1.InstallPlanPhaseInstalling)},
		"Failed":    {reason: "The plan is Failed.", wanted: hasFailed, object: plan(operatorsv1alpha1.InstallPlanPhaseFailed), want: true},
		"NotFailed": {reason: "Steps are left.", wanted: hasFailed, object: plan(operatorsv1alpha1.InstallPlanPhaseInstalling)},
		"Succeeded": {reason: "The phase is Succeeded.", wanted: isSucceeded, object: version(operatorsv1alpha1.CSVPhaseSucceeded, nil), want: true},
		"Installing": {
			reason: "The Deployment is not available yet.", wanted: isSucceeded, object: version(operatorsv1alpha1.CSVPhaseInstalling, nil),
		},
		"Copied": {reason: "A copied version is no installation.", wanted: isSucceeded, object: version(operatorsv1alpha1.CSVPhaseSucceeded, copied)},
		"Group": {
			reason: "OLM has written the namespaces.", wanted: isReconciledGroup, want: true,
			object: &operatorsv1.OperatorGroup{Status: operatorsv1.OperatorGroupStatus{Namespaces: []string{"n"}}},
		},
		"NewGroup": {reason: "OLM has written nothing yet.", wanted: isReconciledGroup, object: &operatorsv1.OperatorGroup{}},
		"Account": {
			reason: "Kubernetes creates this account in each namespace.", wanted: isDefaultAccount, want: true,
			object: &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := tc.wanted(tc.object); got != tc.want {
				t.Errorf("%s\nwant %t, got %t", tc.reason, tc.want, got)
			}
		})
	}
}
