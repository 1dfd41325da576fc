package suite_test

import (
	"testing"
	"time"

	"github.com/onsi/gomega"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/test/testenv/fixtures"
)

// TestConvertsNoDefinitionsOfOthers has a version in a bounded group that claims a definition that
// its bundle lacks. Others create the definition while the version waits for it.
func TestConvertsNoDefinitionsOfOthers(t *testing.T) {
	for name, tt := range map[string]struct {
		manager string
		record  func(*world, *apiextensionsv1.CustomResourceDefinition)
		want    string
	}{
		"administrator": {
			"administrator", func(*world, *apiextensionsv1.CustomResourceDefinition) {},
			"is refused (ForeignManager): it was created by field manager administrator",
		},
		"package": {
			"catalog",
			func(w *world, crd *apiextensionsv1.CustomResourceDefinition) {
				other := w.kettle("pot-" + w.Namespace)
				other.Namespace = "default"
				w.Create(other)
				crd.Annotations = map[string]string{"operatorframework.io/installed-alongside-2": "default/" + other.Name}
			},
			"is refused (OtherPackage): it belongs to another package, installed with ClusterServiceVersion default/pot-",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.UseDeployedRole()
			w.supervise()
			w.deployingGroup()
			crd := fixtures.CRD(name+".victim.example.com", "Cup")
			w.Create(w.kettle("kettle.v1", idle, converts(crd.Name, "/")))
			w.reaches("kettle.v1", operatorsv1alpha1.CSVPhasePending, operatorsv1alpha1.CSVReasonRequirementsNotMet)

			tt.record(w, crd)
			w.Expect(w.Client.Create(t.Context(), crd, client.FieldOwner(tt.manager))).To(gomega.Succeed())
			w.DeleteAtEnd(crd)
			csv := w.reaches("kettle.v1", operatorsv1alpha1.CSVPhaseFailed, operatorsv1alpha1.CSVReasonComponentFailed)
			w.says(csv, "install strategy failed: CustomResourceDefinition "+crd.Name+" "+tt.want)
			w.Expect(w.Get(t.Context(), client.ObjectKeyFromObject(crd), crd)).To(gomega.Succeed())
			w.Expect(crd.Spec.Conversion.Strategy).To(gomega.Equal(apiextensionsv1.NoneConverter))
			w.Expect(crd.ManagedFields).NotTo(gomega.ContainElement(gomega.HaveField("Manager", api.FieldManager)))

			// A definition that an install plan of the version has taken over belongs to the
			// version at once. A failed version is retried after a minute in any case.
			w.change(crd, func() { w.recordPlanOf(crd) })
			w.Eventually(func(g gomega.Gomega) {
				g.Expect(w.Get(t.Context(), client.ObjectKeyFromObject(crd), crd)).To(gomega.Succeed())
				g.Expect(crd.Spec.Conversion.Strategy).To(gomega.Equal(apiextensionsv1.WebhookConverter))
			}).WithTimeout(30 * time.Second).Should(gomega.Succeed())
		})
	}
}
