package suite_test

import (
	"strings"
	"testing"

	"github.com/onsi/gomega"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// forbid makes the API server reject requests for objects in the test's namespace unless an
// expression is true. The returned function removes the policy.
func (w *world) forbid(rule admissionregistrationv1.Rule, verb admissionregistrationv1.OperationType, expression, message string) (end func()) {
	w.T.Helper()
	name := metav1.ObjectMeta{Name: w.Namespace}
	policy := &admissionregistrationv1.ValidatingAdmissionPolicy{ObjectMeta: name, Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
		FailurePolicy: new(admissionregistrationv1.Fail),
		MatchConstraints: &admissionregistrationv1.MatchResources{
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: w.Namespace}},
			ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{RuleWithOperations: admissionregistrationv1.RuleWithOperations{
				Operations: []admissionregistrationv1.OperationType{verb}, Rule: rule,
			}}},
		},
		Validations: []admissionregistrationv1.Validation{{Expression: expression, Message: message}},
	}}
	binding := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{ObjectMeta: name, Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
		PolicyName: name.Name, ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
	}}
	for _, o := range []client.Object{policy, binding} {
		if err := w.Client.Create(w.T.Context(), o); err != nil {
			w.T.Fatal(err)
		}
	}
	ended := false
	end = func() {
		if ended {
			return
		}
		ended = true
		for _, o := range []client.Object{binding, policy} {
			if err := w.Delete(w.T.Context(), o); err != nil {
				w.T.Error(err)
			}
		}
	}
	return end
}

// TestDeniedMending damages a Service while an admission policy rejects the repair. The Service
// must not be deleted, because it is the only way to reach the catalog.
func TestDeniedMending(t *testing.T) {
	w, registry := newWorld(t), newImages(t, "", "")
	registry.push("shop:1", nil)
	w.Create(catalog("shop", registry.host+"/shop:1"))
	w.supervise()
	w.rolledOut("shop", 2)
	end := w.forbid(admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"services"}},
		admissionregistrationv1.Update, "object.spec.ports[0].port != 50051", "the port is taken")
	defer end()
	service := &corev1.Service{}
	w.get(w, "shop", service)
	w.Eventually(func() error {
		return w.Update(t.Context(), service.DeepCopy(), client.DryRunAll)
	}).Should(gomega.MatchError(gomega.ContainSubstring("the port is taken")))
	uid := service.UID
	service.Spec.Ports[0].Port = 50052
	if err := w.Update(t.Context(), service); err != nil {
		t.Fatal(err)
	}
	w.Eventually(func(g gomega.Gomega) {
		g.Expect(w.source(g, "shop").Status.Message).To(gomega.ContainSubstring("the port is taken"))
	}).Should(gomega.Succeed())
	w.Consistently(func(g gomega.Gomega) {
		w.get(g, "shop", service)
		g.Expect(service.UID).To(gomega.Equal(uid))
	}).Should(gomega.Succeed())
	end()
	w.Eventually(func(g gomega.Gomega) {
		w.get(g, "shop", service)
		g.Expect(service.UID).To(gomega.Equal(uid))
		g.Expect(service.Spec.Ports[0].Port).To(gomega.Equal(int32(50051)))
	}).Should(gomega.Succeed())
}

// TestDeniedEnd moves a catalog to an address while an admission policy rejects the deletion of its
// Deployment. The status reports the error.
func TestDeniedEnd(t *testing.T) {
	w, registry := newWorld(t), newImages(t, "", "")
	registry.push("shop:1", nil)
	w.Create(catalog("shop", registry.host+"/shop:1"))
	w.supervise()
	d := w.rolledOut("shop", 2)
	end := w.forbid(admissionregistrationv1.Rule{APIGroups: []string{"apps"}, APIVersions: []string{"v1"}, Resources: []string{"deployments"}},
		admissionregistrationv1.Delete, "false", "not now")
	defer end()
	w.Eventually(func() error {
		return w.Delete(t.Context(), d.DeepCopy(), client.DryRunAll)
	}).Should(gomega.MatchError(gomega.ContainSubstring("not now")))
	w.Eventually(func(g gomega.Gomega) {
		s := w.source(g, "shop")
		s.Spec.Image, s.Spec.Address = "", "127.0.0.1:1"
		g.Expect(w.Update(t.Context(), s)).To(gomega.Succeed())
	}).Should(gomega.Succeed())
	w.becomes("shop", func(g gomega.Gomega, s *operatorsv1alpha1.CatalogSource) {
		g.Expect(s.Status.Message).To(gomega.ContainSubstring("not now"))
		g.Expect(condition(s, "Available")).To(gomega.BeEmpty())
	})
	end()
	w.Eventually(func() bool {
		return apierrors.IsNotFound(w.Get(t.Context(), client.ObjectKeyFromObject(d), &appsv1.Deployment{}))
	}).Should(gomega.BeTrue())
}

// TestGoneDigest moves the tag of a catalog without polling. The supervisor must query the registry
// again when a node cannot pull the old digest.
func TestGoneDigest(t *testing.T) {
	w, registry := newWorld(t), newImages(t, "", "")
	registry.push("shop:1", nil)
	w.Create(catalog("shop", registry.host+"/shop:1"))
	w.supervise()
	d := w.rolledOut("shop", 2)
	_, digest := registry.push("shop:1", nil)
	w.Eventually(func(g gomega.Gomega) {
		var pods corev1.PodList
		g.Expect(w.List(t.Context(), &pods, client.InNamespace(w.Namespace))).To(gomega.Succeed())
		g.Expect(pods.Items).NotTo(gomega.BeEmpty())
		pod := &pods.Items[0]
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue}}
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "registry-server", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{
			Reason: "ImagePullBackOff", Message: "ErrImagePull: " + strings.Repeat("the registry sent this page ", 1500),
		}}}}
		g.Expect(w.Status().Update(t.Context(), pod)).To(gomega.Succeed())
	}).Should(gomega.Succeed())
	if after := w.rolledOut("shop", 2, runs(registry.host+"/shop@"+digest)); after.UID != d.UID {
		t.Error("the Deployment is another one")
	}
}

// TestDefaultName runs a catalog whose ServiceAccount is the default one of the namespace.
func TestDefaultName(t *testing.T) {
	w, registry := newWorld(t), newImages(t, "porter", "secret")
	_, digest := registry.push("shop:1", nil)
	account := &corev1.ServiceAccount{}
	w.Eventually(func(g gomega.Gomega) { w.get(g, "default", account) }).Should(gomega.Succeed())
	w.Create(pullSecret("pull", registry.host, "porter", "secret"), catalog("default", registry.host+"/shop:1", secrets("pull")))
	w.supervise()
	d := w.rolledOut("default", 2, runs(registry.host+"/shop@"+digest))
	if got := d.Spec.Template.Spec.ImagePullSecrets; len(got) != 1 || got[0].Name != "pull" {
		t.Errorf("pull secrets %v", got)
	}
	w.becomes("default", func(g gomega.Gomega, s *operatorsv1alpha1.CatalogSource) {
		g.Expect(s.Status.Message).To(gomega.BeEmpty())
	})
	now := &corev1.ServiceAccount{}
	w.get(w, "default", now)
	if now.ResourceVersion != account.ResourceVersion {
		t.Errorf("ServiceAccount %+v", now)
	}
}
