package clusterserviceversion

import (
	"testing"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	operatorsv2 "github.com/operator-framework/api/pkg/operators/v2"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/controllers/clusterserviceversion/versions"
	"github.com/chandlery/chandlery/supervisor/webhook"
)

// memory returns a client of objects in memory.
func memory(t *testing.T, objects ...client.Object) client.Client {
	t.Helper()
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, operatorsv1alpha1.AddToScheme, operatorsv2.AddToScheme} {
		if err := add(s); err != nil {
			t.Fatal(err)
		}
	}
	csv := &operatorsv1alpha1.ClusterServiceVersion{}
	return fake.NewClientBuilder().WithScheme(s).WithIndex(csv, indexState, stateKeys).WithIndex(csv, indexCRD, crdKeys).WithObjects(objects...).Build()
}

// TestADeletedVersionTakesItsPromisesBack deletes a version whose webhook was to convert to a new
// storage version, while the version before it continues to convert.
func TestADeletedVersionTakesItsPromisesBack(t *testing.T) {
	s := hookedScope(t)
	next := hooked()
	next.Name, next.UID, next.Spec.Replaces = "kettle.v2", "uid-2", s.CSV.Name
	next.DeletionTimestamp = new(metav1.Now())
	c := webhook.Conversions(s.CSV, s.served.servers, s.served.certs)[0]
	for name, tc := range map[string]struct{ noted, left string }{
		"itsOwn":    {noted: "kitchen/kettle.v2:v2"},
		"another's": {noted: "kitchen/kettle.v3:v2", left: "kitchen/kettle.v3:v2"},
	} {
		t.Run(name, func(t *testing.T) {
			crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{
				Name: "cups.example.com", Annotations: map[string]string{api.AnnotationStorageVersion: tc.noted},
			}}
			crd.Spec.Conversion = c.Want
			crd.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1", Served: true, Storage: true}, {Name: "v2", Served: true}}
			cluster := memory(t, crd)
			r := conversionCleaner{client: cluster, live: cluster}
			if why, err := r.remove(t.Context(), &cleanup{csv: next, others: versions.List{s.CSV, next}}); err != nil || why != "" {
				t.Fatalf("left is %q, error %v", why, err)
			}
			if err := cluster.Get(t.Context(), client.ObjectKeyFromObject(crd), crd); err != nil {
				t.Fatal(err)
			}
			if got := crd.Annotations[api.AnnotationStorageVersion]; got != tc.left {
				t.Errorf("noted is %q, want %q", got, tc.left)
			}
			if crd.Spec.Conversion.Webhook == nil {
				t.Error("the version that stays converts no more")
			}
		})
	}
}
