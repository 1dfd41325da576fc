package suite_test

import (
	"strings"
	"testing"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/plan"
)

// TestPlanGoesOnWhenTheGroupNamesNoAccount removes the account of a group for which a plan
// waits (R6 of the compatibility scenarios).
func TestPlanGoesOnWhenTheGroupNamesNoAccount(t *testing.T) {
	w := newWorld(t)
	group := w.group("group")
	group.Spec.ServiceAccountName = "installer"
	w.create(group, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "installer"}})
	w.employ()
	w.supervise(time.Second)
	w.plan(w.bundle(w.crd(), settings), true, plan.MaxInline)
	p := w.becomes(func(p *operatorsv1alpha1.InstallPlan) bool {
		return p.Status.Phase == working && strings.Contains(p.Status.Message, "system:serviceaccount:"+w.namespace+":installer")
	})
	if p.Status.AttenuatedServiceAccountRef == nil {
		t.Error("the plan names no account")
	}
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"serviceAccountName":null}}`))
	if err := w.Patch(t.Context(), group, patch); err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	p = w.reaches(complete)
	t.Logf("complete %s after the account was removed", time.Since(begun).Round(time.Millisecond))
	if ref := p.Status.AttenuatedServiceAccountRef; ref != nil {
		t.Errorf("the plan still names the account %s", ref.Name)
	}
}
