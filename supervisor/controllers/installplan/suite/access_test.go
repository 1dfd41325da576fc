package suite_test

import (
	"cmp"
	"strings"
	"testing"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/plansteps"
	"github.com/chandlery/chandlery/test/delayedwatch"
)

// TestPlanContinuesWithoutAccount removes the account of a group for which a plan waits
// (R6 of the compatibility scenarios).
func TestPlanContinuesWithoutAccount(t *testing.T) {
	w := newWorld(t)
	group := w.group("group")
	group.Spec.ServiceAccountName = "installer"
	w.Create(group, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "installer"}})
	w.UseDeployedRole()
	w.supervise(time.Second)
	w.plan(w.bundle(w.crd(), settings), true, plansteps.MaxInline)
	p := w.becomes(func(p *operatorsv1alpha1.InstallPlan) bool {
		return p.Status.Phase == working && strings.Contains(p.Status.Message, "system:serviceaccount:"+w.Namespace+":installer")
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

// TestPlanUsesNoFormerAccount changes the account of a group while the cache of the controller lags
// behind (R5 of the compatibility scenarios). The controller must not use the former account.
func TestPlanUsesNoFormerAccount(t *testing.T) {
	for _, former := range []string{"installer", ""} {
		t.Run("from "+cmp.Or(former, "none"), func(t *testing.T) {
			w := newWorld(t)
			group := w.group("group")
			group.Spec.ServiceAccountName = former
			w.Create(group)
			for _, name := range []string{"installer", "weak"} {
				w.Create(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: name}})
			}
			w.grant("all", rbacv1.PolicyRule{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}})
			gate := delayedwatch.New("operatorgroups")
			w.Config.Wrap(gate.Wrap)
			w.supervise(time.Minute)
			w.plan(w.bundle(settings), false, plansteps.MaxInline)
			w.reaches(operatorsv1alpha1.InstallPlanPhaseRequiresApproval)

			release := gate.Hold()
			t.Cleanup(release)
			patch := client.MergeFrom(group.DeepCopy())
			group.Spec.ServiceAccountName = "weak"
			if err := w.Patch(t.Context(), group, patch); err != nil {
				t.Fatal(err)
			}
			if err := w.Patch(t.Context(), w.read(), client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"approved":true}}`))); err != nil {
				t.Fatal(err)
			}
			p := w.becomes(func(p *operatorsv1alpha1.InstallPlan) bool {
				return p.Status.Phase == complete || strings.Contains(p.Status.Message, "system:serviceaccount:"+w.Namespace+":weak")
			})
			if ref := p.Status.AttenuatedServiceAccountRef; p.Status.Phase == complete || ref == nil || ref.Name != "weak" {
				t.Errorf("phase %s, account %+v, steps %v", p.Status.Phase, ref, statuses(p))
			}
		})
	}
}
