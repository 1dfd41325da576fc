package installplan

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/api"
)

// TestGrantsRequeueNoPlan has a temporary grant of the supervisor, which grants the account of
// a plan nothing.
func TestGrantsRequeueNoPlan(t *testing.T) {
	meta := metav1.ObjectMeta{Name: "chandlery-check-lamps.example", Labels: map[string]string{api.LabelGrant: "true"}}
	for _, o := range []client.Object{&rbacv1.ClusterRole{ObjectMeta: meta}, &rbacv1.ClusterRoleBinding{ObjectMeta: meta}} {
		// Without a client it cannot list plans.
		if got := (&planMapper{}).withPermissions(t.Context(), o); got != nil {
			t.Errorf("%T requeues %v", o, got)
		}
	}
}

// TestUnfinished checks which plans a changed role, binding or account finds: a cluster-scoped role changes in each
// installation, and reads no plan that has no account.
func TestUnfinished(t *testing.T) {
	const installing, complete = operatorsv1alpha1.InstallPlanPhaseInstalling, operatorsv1alpha1.InstallPlanPhaseComplete
	account := &corev1.ObjectReference{Namespace: "kitchen", Name: "cook"}
	for name, tt := range map[string]struct {
		status operatorsv1alpha1.InstallPlanStatus
		want   []string
	}{
		"without an account":      {operatorsv1alpha1.InstallPlanStatus{Phase: installing}, []string{indexedPlan}},
		"with an account":         {operatorsv1alpha1.InstallPlanStatus{Phase: installing, AttenuatedServiceAccountRef: account}, []string{indexedPlan, indexedAccount}},
		"waiting for approval":    {operatorsv1alpha1.InstallPlanStatus{Phase: operatorsv1alpha1.InstallPlanPhaseRequiresApproval}, []string{indexedWaiting}},
		"complete":                {operatorsv1alpha1.InstallPlanStatus{Phase: complete}, nil},
		"complete, of an account": {operatorsv1alpha1.InstallPlanStatus{Phase: complete, AttenuatedServiceAccountRef: account}, nil},
	} {
		if diff := cmp.Diff(tt.want, unfinished(&operatorsv1alpha1.InstallPlan{Status: tt.status})); diff != "" {
			t.Errorf("%s: -want +got:\n%s", name, diff)
		}
	}
}
