package suite_test

import (
	"testing"
	"time"

	"github.com/onsi/gomega"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/api"
)

// TestDefersForOneVersionOnly checks that a definition stays without conversion until the
// webhook in its annotation answers. The deletion of a version that never runs removes its
// annotation.
func TestDefersForOneVersionOnly(t *testing.T) {
	w := newWorld(t)
	w.supervise()
	crd := w.tableware("promise.example.com")
	read := func(g gomega.Gomega) *apiextensionsv1.CustomResourceDefinition {
		g.Expect(w.Get(t.Context(), client.ObjectKeyFromObject(crd), crd)).To(gomega.Succeed())
		return crd
	}
	w.change(crd, func() {
		second := *crd.Spec.Versions[0].DeepCopy()
		second.Name, second.Storage = "v2", false
		crd.Spec.Versions = append(crd.Spec.Versions[:1], second)
		crd.Annotations = map[string]string{"chandlery.dev/conversion": w.Namespace + "/kettle.v1"}
	})

	w.Create(w.group("all"), w.kettle("kettle.v1", idle, converts(crd.Name, "/old")))
	waits := func(name string) {
		t.Helper()
		w.Eventually(func(g gomega.Gomega) {
			csv := w.csv(name)
			g.Expect(csv.Status.Phase).To(gomega.Equal(operatorsv1alpha1.CSVPhaseInstalling))
			g.Expect(csv.Annotations[api.AnnotationCause]).To(gomega.ContainSubstring("conversion webhook"))
		}).Should(gomega.Succeed())
	}
	waits("kettle.v1")
	w.Expect(read(w).Spec.Conversion.Strategy).To(gomega.Equal(apiextensionsv1.NoneConverter))
	w.pod(convertsAt("/old"))
	w.succeeds("kettle.v1")
	w.Expect(read(w).Spec.Conversion.Strategy).To(gomega.Equal(apiextensionsv1.WebhookConverter))
	w.Expect(crd.Annotations).NotTo(gomega.HaveKey("chandlery.dev/conversion"))

	const storage = "chandlery.dev/storage-version"
	w.change(crd, func() { crd.Annotations = map[string]string{storage: w.Namespace + "/kettle.v2:v2"} })
	next := w.kettle("kettle.v2", replaces("kettle.v1"), image("example.com/kettle:2"), idle, converts(crd.Name, "/new"))
	w.Create(next)
	waits("kettle.v2")
	w.Expect(w.Delete(t.Context(), w.csv("kettle.v2"))).To(gomega.Succeed())
	w.EventuallyGone(next)
	w.Expect(read(w).Annotations).NotTo(gomega.HaveKey(storage))
	w.Consistently(func(g gomega.Gomega) {
		g.Expect(read(g).Spec.Versions[0].Storage).To(gomega.BeTrue())
		g.Expect(crd.Spec.Conversion.Strategy).To(gomega.Equal(apiextensionsv1.WebhookConverter))
	}).WithTimeout(2 * time.Second).Should(gomega.Succeed())
}
