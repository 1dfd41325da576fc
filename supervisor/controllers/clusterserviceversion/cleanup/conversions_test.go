package cleanup

import (
	"testing"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/controllers/clusterserviceversion/versions"
	"github.com/chandlery/chandlery/supervisor/webhook"
)

// TestADeletedVersionTakesItsPromisesBack deletes a version whose webhook was to convert to a new
// storage version, while the version before it continues to convert.
func TestADeletedVersionTakesItsPromisesBack(t *testing.T) {
	old, next := hooked(), hooked()
	next.Name, next.UID, next.Spec.Replaces = "kettle.v2", "uid-2", old.Name
	next.DeletionTimestamp = new(metav1.Now())
	servers, err := webhook.Servers(old)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := webhook.Issue(servers[0], old.Namespace, noon())
	if err != nil {
		t.Fatal(err)
	}
	c := webhook.Conversions(old, servers, map[string]*webhook.Certificate{"kettle": cert})[0]
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
			if why, err := r.remove(t.Context(), &cleanup{csv: next, others: versions.List{old, next}}); err != nil || why != "" {
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

// TestConvertedByOther checks whether another version still converts.
func TestConvertedByOther(t *testing.T) {
	other := func(change func(*operatorsv1alpha1.ClusterServiceVersion)) *operatorsv1alpha1.ClusterServiceVersion {
		csv := hooked()
		csv.Name, csv.UID = "kettle.v2", "uid-2"
		change(csv)
		return csv
	}
	cases := map[string]struct {
		other *operatorsv1alpha1.ClusterServiceVersion
		want  bool
	}{
		"Itself":     {other: hooked()},
		"TheNext":    {other: other(func(*operatorsv1alpha1.ClusterServiceVersion) {}), want: true},
		"LeavingToo": {other: other(func(csv *operatorsv1alpha1.ClusterServiceVersion) { csv.DeletionTimestamp = new(metav1.Now()) })},
		"Elsewhere":  {other: other(func(csv *operatorsv1alpha1.ClusterServiceVersion) { csv.Namespace = "bar" })},
		"Converts": {other: other(func(csv *operatorsv1alpha1.ClusterServiceVersion) {
			csv.Spec.WebhookDefinitions[2].ConversionCRDs = nil
		})},
		"OtherWebhooks": {other: other(func(csv *operatorsv1alpha1.ClusterServiceVersion) {
			csv.Spec.WebhookDefinitions = csv.Spec.WebhookDefinitions[:2]
		})},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := convertedByOther(&cleanup{csv: hooked(), others: versions.List{tc.other}}, "cups.example.com"); got != tc.want {
				t.Errorf("convertedByOther(...) = %t, want %t", got, tc.want)
			}
		})
	}
}
