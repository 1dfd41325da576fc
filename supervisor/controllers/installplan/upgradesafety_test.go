package installplan

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/crd/upgradesafety"
	"github.com/chandlery/chandlery/test/testenv/fixtures"
)

// TestCheckConversions has lamp.v1 convert a definition of an administrator. Only a step of
// lamp.v1 itself replaces the check: the bundle's definition is then checked instead.
func TestCheckConversions(t *testing.T) {
	const (
		crd  = `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"lamps.example"}}`
		lamp = `{"kind":"ClusterServiceVersion","metadata":{"name":"lamp.v1"},"spec":{"webhookdefinitions":[{"type":"ConversionWebhook","conversionCRDs":["lamps.example"]}]}}`
	)
	step := func(kind, name, version string) *operatorsv1alpha1.Step {
		return &operatorsv1alpha1.Step{Resolving: version, Resource: operatorsv1alpha1.StepResource{Kind: kind, Name: name}}
	}
	for name, tc := range map[string]struct {
		reason  string
		beside  *operatorsv1alpha1.Step
		refused bool
	}{
		"Own":          {reason: "the bundle has the definition", beside: step(kindCRD, "lamps.example", "lamp.v1")},
		"OtherVersion": {reason: "another version of the plan has the definition", beside: step(kindCRD, "lamps.example", "tray.v1"), refused: true},
		"OtherCRD":     {reason: "the bundle has another definition", beside: step(kindCRD, "trays.example", "lamp.v1"), refused: true},
		"OtherKind":    {reason: "the bundle has another object of that name", beside: step("Service", "lamps.example", "lamp.v1"), refused: true},
	} {
		t.Run(name, func(t *testing.T) {
			a := &crdApplier{observer: &observer{
				namespace: "ops",
				live:      fake.NewClientBuilder().WithObjects(parsed(t, crd)).Build(),
				content:   &content{versions: map[string]*unstructured.Unstructured{"lamp.v1": parsed(t, lamp)}},
			}}
			version := step(operatorsv1alpha1.ClusterServiceVersionKind, "lamp.v1", "lamp.v1")
			err := a.checkConversions(t.Context(), []*operatorsv1alpha1.Step{tc.beside, version})
			if !tc.refused {
				if err != nil {
					t.Errorf("%s: error %v", tc.reason, err)
				}
				return
			}
			var refusal *upgradesafety.RefusalError
			if err == nil || err.step != version || !errors.As(err.err, &refusal) || refusal.Reason != upgradesafety.ForeignManager {
				t.Errorf("%s: error %v, want a refusal of the version", tc.reason, err)
			}
		})
	}
}

// TestInstalledWith has a definition that was installed with one version, and lamp.v2 of the package lamp, which
// replaces lamp.v1. The author of a bundle chooses what it replaces.
func TestInstalledWith(t *testing.T) {
	const properties = `{"properties":[{"type":"olm.package","value":{"packageName":"PACKAGE","version":"1.0.0"}}]}`
	scheme := fixtures.Scheme(t)
	version := func(namespace, name, pkg string) *operatorsv1alpha1.ClusterServiceVersion {
		csv := &operatorsv1alpha1.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
		if pkg != "" {
			csv.Annotations = map[string]string{api.AnnotationProperties: strings.Replace(properties, "PACKAGE", pkg, 1)}
		}
		return csv
	}
	lamp := parsed(t, `{"kind":"ClusterServiceVersion","metadata":{"name":"lamp.v2"},"spec":{"replaces":"lamp.v1"}}`)
	lamp.SetAnnotations(version("", "", "lamp").Annotations)
	for name, tc := range map[string]struct {
		reason string
		with   *operatorsv1alpha1.ClusterServiceVersion
		gone   bool
		own    bool
		other  bool
	}{
		"Itself":          {reason: "it is the same version", with: version("ops", "lamp.v2", "lamp"), own: true},
		"Replaced":        {reason: "lamp.v2 replaces it", with: version("ops", "lamp.v1", "lamp"), own: true},
		"ReplacedSilent":  {reason: "lamp.v2 replaces it, and it states no package", with: version("ops", "lamp.v1", ""), own: true},
		"ReplacedForeign": {reason: "lamp.v2 replaces a version of another package", with: version("ops", "lamp.v1", "tray"), other: true},
		"Elsewhere":       {reason: "the operator is installed in another namespace too", with: version("b", "lamp.v1", "lamp"), own: true},
		"Namesake":        {reason: "a version of another namespace is not replaced", with: version("b", "lamp.v1", ""), other: true},
		"Other":           {reason: "it is of another package", with: version("ops", "tray.v1", "tray"), other: true},
		"Gone":            {reason: "it no longer exists", with: version("ops", "tray.v1", "tray"), gone: true},
	} {
		t.Run(name, func(t *testing.T) {
			c := fake.NewClientBuilder().WithScheme(scheme)
			if !tc.gone {
				c.WithObjects(tc.with)
			}
			reader := c.Build()
			o := &observer{namespace: "ops", cached: reader, live: reader}
			recorded := types.NamespacedName{Namespace: tc.with.Namespace, Name: tc.with.Name}
			live := &apiextensionsv1.CustomResourceDefinition{}
			setInstalledAlongside(live, []types.NamespacedName{recorded})
			versions, err := o.recorded(t.Context(), live)
			s := &crdState{version: types.NamespacedName{Namespace: "ops", Name: "lamp.v2"}, csv: lamp, recorded: versions}
			own, others := s.installedBy()
			if err != nil || own != tc.own {
				t.Errorf("%s: own %t, error %v", tc.reason, own, err)
			}
			var want []types.NamespacedName
			if tc.other {
				want = append(want, recorded)
			}
			if diff := cmp.Diff(want, others); diff != "" {
				t.Errorf("%s: versions of other operators -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
