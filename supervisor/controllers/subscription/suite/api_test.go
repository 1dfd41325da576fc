package suite_test

import (
	"testing"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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
		"api-server resource not found installing VerticalPodAutoscaler scale: GroupVersionKind autoscaling.k8s.io/v1, Kind=VerticalPodAutoscaler not found on the cluster")
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
