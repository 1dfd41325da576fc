package suite_test

import (
	"testing"

	"github.com/onsi/gomega"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/test/fakecatalog"
)

// TestSubscriptionNamesTheAPIThatIsMissing has a bundle with an object whose kind is not served at
// first.
func TestSubscriptionNamesTheAPIThatIsMissing(t *testing.T) {
	w := newWorld(t)
	bundle := entry("scale.v1", "1.0.0")
	bundle.Objects = append(bundle.Objects, `{"apiVersion":"autoscaling.k8s.io/v1","kind":"VerticalPodAutoscaler","metadata":{"name":"scale"}}`)
	w.server.Serve(fakecatalog.Simple("scale", bundle))
	w.supervise()
	w.Create(w.subscription("my-scale", "scale"))
	w.says("my-scale", operatorsv1alpha1.SubscriptionInstallPlanPending, string(operatorsv1alpha1.InstallPlanPhaseInstalling),
		"")
	w.Eventually(func(g gomega.Gomega) {
		plans := &operatorsv1alpha1.InstallPlanList{}
		g.Expect(w.List(t.Context(), plans, client.InNamespace(w.Namespace))).To(gomega.Succeed())
		g.Expect(plans.Items).To(gomega.HaveLen(1))
		g.Expect(plans.Items[0].Status.Message).To(gomega.ContainSubstring(
			"api-server resource not found installing VerticalPodAutoscaler scale: GroupVersionKind autoscaling.k8s.io/v1, Kind=VerticalPodAutoscaler not found on the cluster"))
	}).Should(gomega.Succeed())
	w.Create(&apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{
			Name:        "verticalpodautoscalers.autoscaling.k8s.io",
			Annotations: map[string]string{"api-approved.kubernetes.io": "unapproved, a test"},
		},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "autoscaling.k8s.io", Scope: apiextensionsv1.NamespaceScoped,
			Names:    apiextensionsv1.CustomResourceDefinitionNames{Plural: "verticalpodautoscalers", Kind: "VerticalPodAutoscaler"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1", Served: true, Storage: true, Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object"}}}},
		},
	})
	w.onlyPlan(operatorsv1alpha1.InstallPlanPhaseComplete)
	w.becomes("my-scale", func(sub *operatorsv1alpha1.Subscription) bool {
		return sub.Status.GetCondition(operatorsv1alpha1.SubscriptionInstallPlanPending).Status != "True"
	})
}
