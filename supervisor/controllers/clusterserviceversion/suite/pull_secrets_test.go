package suite_test

import (
	"maps"
	"testing"
	"time"

	"github.com/onsi/gomega"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chandlery/chandlery/supervisor/api"
)

// shop returns a catalog that names pull secrets for its operators.
func shop(namespace, name, secrets string) *operatorsv1alpha1.CatalogSource {
	return &operatorsv1alpha1.CatalogSource{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Annotations: map[string]string{api.AnnotationOperatorPullSecrets: secrets}},
		Spec:       operatorsv1alpha1.CatalogSourceSpec{SourceType: operatorsv1alpha1.SourceTypeGrpc, Address: "shop.invalid:50051"},
	}
}

// TestPullSecretsOfCatalog checks that the pods of an operator have the pull secrets that its catalog names, and keep
// them while the catalog is away or its annotation is invalid.
func TestPullSecretsOfCatalog(t *testing.T) {
	w := newWorld(t)
	w.supervise()
	catalog := shop(w.Namespace, "shop", "mirror,vendor")
	sub := w.wish(nil)
	w.Create(catalog, w.group("own", w.Namespace), sub, w.kettle("kettle.v1", w.packaged, func(csv *operatorsv1alpha1.ClusterServiceVersion) {
		maps.Copy(csv.Labels, api.CatalogLabels(types.NamespacedName{Namespace: w.Namespace, Name: "shop"}))
	}))
	w.succeeds("kettle.v1")
	names := func() []string {
		var all []string
		for _, secret := range w.deployment().Spec.Template.Spec.ImagePullSecrets {
			all = append(all, secret.Name)
		}
		return all
	}
	first := w.deployment()
	w.Expect(names()).To(gomega.Equal([]string{"mirror", "vendor"}))
	w.Expect(first.Generation).To(gomega.Equal(int64(1)), "the first Deployment was not made as it is to stay")

	// configured changes another setting, and waits until it is applied.
	configured := func(value string) {
		t.Helper()
		env := corev1.EnvVar{Name: "HEAT", Value: value}
		w.change(sub, func() { sub.Spec.Config = &operatorsv1alpha1.SubscriptionConfig{Env: []corev1.EnvVar{env}} })
		w.Eventually(func() []corev1.EnvVar { return w.deployment().Spec.Template.Spec.Containers[0].Env }).Should(gomega.ContainElement(env))
	}
	w.change(catalog, func() { catalog.Annotations[api.AnnotationOperatorPullSecrets] = "vendor" })
	w.Eventually(names).Should(gomega.Equal([]string{"vendor"}))
	w.change(catalog, func() { catalog.Annotations[api.AnnotationOperatorPullSecrets] = "olm/mirror" })
	configured("1")
	w.Expect(names()).To(gomega.Equal([]string{"vendor"}), "an invalid annotation")

	w.Expect(w.Delete(t.Context(), catalog)).To(gomega.Succeed())
	configured("2")
	generation := w.deployment().Generation
	w.Consistently(func() int64 { return w.deployment().Generation }).WithTimeout(2 * time.Second).Should(gomega.Equal(generation))
	w.Expect(names()).To(gomega.Equal([]string{"vendor"}), "a deleted catalog")

	again := shop(w.Namespace, "shop", "")
	w.Create(again)
	w.Eventually(names).Should(gomega.BeEmpty())
	w.Expect(w.deployment().Annotations).NotTo(gomega.HaveKey(api.AnnotationOperatorPullSecrets))
	w.succeeds("kettle.v1")
}

// TestPullSecretsOfOtherTenant checks that a version cannot show the names of Secrets in another tenant's catalog.
func TestPullSecretsOfOtherTenant(t *testing.T) {
	w := newWorld(t)
	w.supervise()
	w.Create(shop(metav1.NamespaceDefault, w.Namespace, "hidden"), w.group("own", w.Namespace),
		w.kettle("kettle.v1", w.packaged, func(csv *operatorsv1alpha1.ClusterServiceVersion) {
			csv.Labels = api.CatalogLabels(types.NamespacedName{Namespace: metav1.NamespaceDefault, Name: w.Namespace})
		}))
	w.succeeds("kettle.v1")
	w.Expect(w.deployment().Spec.Template.Spec.ImagePullSecrets).To(gomega.BeEmpty())
}
