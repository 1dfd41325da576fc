package suite_test

import (
	"strings"
	"testing"
	"time"

	"github.com/onsi/gomega"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/apiserver/refusal"
	"github.com/chandlery/chandlery/supervisor/plansteps"
)

// policy creates a policy against ConfigMaps called settings in the namespace.
func (w *world) policy(action admissionregistrationv1.ValidationAction) *admissionregistrationv1.ValidatingAdmissionPolicyBinding {
	w.T.Helper()
	meta := metav1.ObjectMeta{Name: "strict-" + w.Namespace}
	w.Create(&admissionregistrationv1.ValidatingAdmissionPolicy{ObjectMeta: meta, Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
		FailurePolicy: new(admissionregistrationv1.Fail),
		MatchConstraints: &admissionregistrationv1.MatchResources{
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": w.Namespace}},
			ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{RuleWithOperations: admissionregistrationv1.RuleWithOperations{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.OperationAll},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}},
			}}},
		},
		Validations: []admissionregistrationv1.Validation{{Expression: `object.metadata.name != "settings"`, Message: "settings are bad"}},
	}})
	binding := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{ObjectMeta: meta, Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
		PolicyName: meta.Name, ValidationActions: []admissionregistrationv1.ValidationAction{action},
	}}
	w.Create(binding)
	// The API server applies the policy after a moment.
	w.Eventually(func() bool {
		probe := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "settings"}}
		heard := w.warningCount()
		err := w.Client.Create(w.T.Context(), probe, client.DryRunAll)
		return err != nil || w.warningCount() > heard
	}).Should(gomega.BeTrue())
	return binding
}

// TestRefusalOfAPolicyPasses has a policy that refuses an object for longer than the retry window.
func TestRefusalOfAPolicyPasses(t *testing.T) {
	w := newWorld(t)
	w.Create(w.group("group"))
	binding := w.policy(admissionregistrationv1.Deny)
	w.supervise(time.Millisecond)
	w.plan(w.bundle(settings), true, plansteps.MaxInline)
	seen := map[string]bool{}
	w.becomes(func(p *operatorsv1alpha1.InstallPlan) bool {
		refused := p.Status.Phase == working && strings.Contains(p.Status.Message, "error applying ConfigMap settings of lamp.v1: ") &&
			strings.Contains(p.Status.Message, "settings are bad") && causedBy(p, refusal.AdmissionDenied, "change the policy that refuses it, or ask for an exception; the plan then continues automatically")
		seen[p.ResourceVersion] = seen[p.ResourceVersion] || refused
		return refused
	})
	if err := w.Delete(t.Context(), binding); err != nil {
		t.Fatal(err)
	}
	w.reaches(complete)
}

// TestQuotaPasses has a quota without room for the object.
func TestQuotaPasses(t *testing.T) {
	w := newWorld(t)
	w.Create(w.group("group"))
	none := corev1.ResourceList{"count/configmaps": resource.MustParse("0")}
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "few"}, Spec: corev1.ResourceQuotaSpec{Hard: none}}
	w.Create(quota)
	quota.Status = corev1.ResourceQuotaStatus{Hard: none, Used: none}
	w.Eventually(func() error {
		if err := w.Get(t.Context(), client.ObjectKeyFromObject(quota), quota); err != nil || len(quota.Status.Hard) > 0 {
			return client.IgnoreNotFound(err)
		}
		quota.Status = corev1.ResourceQuotaStatus{Hard: none, Used: none}
		return w.Status().Update(t.Context(), quota)
	}).Should(gomega.Succeed())
	w.Eventually(func() error {
		return w.Client.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "probe"}}, client.DryRunAll)
	}).ShouldNot(gomega.Succeed())
	w.supervise(time.Millisecond)
	w.plan(w.bundle(settings), true, plansteps.MaxInline)
	w.becomes(func(p *operatorsv1alpha1.InstallPlan) bool {
		return p.Status.Phase == working && strings.Contains(p.Status.Message, "error applying ConfigMap settings of lamp.v1: ") &&
			strings.Contains(p.Status.Message, "exceeded quota: few") && causedBy(p, refusal.QuotaExceeded, "raise the quota, or delete objects that count against it; the plan then continues automatically")
	})
	if err := w.Delete(t.Context(), quota); err != nil {
		t.Fatal(err)
	}
	w.reaches(complete)
}

// TestWarningsAreReported has an API server that accepts an object with a warning.
func TestWarningsAreReported(t *testing.T) {
	w := newWorld(t)
	w.Create(w.group("group"))
	w.policy(admissionregistrationv1.Warn)
	w.supervise(time.Minute)
	w.plan(w.bundle(settings), true, plansteps.MaxInline)
	w.reaches(complete)
	w.Eventually(func(g gomega.Gomega) {
		list := &eventsv1.EventList{}
		g.Expect(w.List(t.Context(), list, client.InNamespace(w.Namespace))).To(gomega.Succeed())
		var events []eventsv1.Event
		for i := range list.Items {
			if list.Items[i].Reason == "AppliedWithWarnings" {
				events = append(events, list.Items[i])
			}
		}
		g.Expect(events).To(gomega.HaveLen(1))
		g.Expect(events[0].Type).To(gomega.Equal(corev1.EventTypeWarning))
		g.Expect(events[0].Regarding.FieldPath).To(gomega.Equal("status.plan[4]"))
		g.Expect(events[0].Note).To(gomega.HavePrefix(`1 warning(s) generated during installation of operator "lamp.v1" (ConfigMap "settings"): `))
		g.Expect(events[0].Note).To(gomega.ContainSubstring("settings are bad"))
	}).Should(gomega.Succeed())
}

// causedBy reports whether the cause of a plan has a reason and a remedy, and may pass.
func causedBy(p *operatorsv1alpha1.InstallPlan, reason refusal.Reason, remedy string) bool {
	cause, found := api.CauseOf(p)
	return found && cause.Reason == string(reason) && cause.Remedy == remedy && !cause.Final
}
