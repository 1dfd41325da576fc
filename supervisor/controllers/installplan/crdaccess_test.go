package installplan

import (
	"errors"
	"testing"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/chandlery/chandlery/supervisor/crdguard"
)

// TestGuardAllConversions has lamp.v1 convert a definition of an administrator. Only a step of
// lamp.v1 itself replaces the check: the bundle's definition is then checked instead.
func TestGuardAllConversions(t *testing.T) {
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
			e := &execution{
				namespace: "ops",
				client:    fake.NewClientBuilder().WithObjects(parsed(t, crd)).Build(),
				content:   &content{versions: map[string]*unstructured.Unstructured{"lamp.v1": parsed(t, lamp)}},
			}
			version := step(operatorsv1alpha1.ClusterServiceVersionKind, "lamp.v1", "lamp.v1")
			err := guardAllConversions(t.Context(), e, []*operatorsv1alpha1.Step{tc.beside, version})
			if !tc.refused {
				if err != nil {
					t.Errorf("%s: error %v", tc.reason, err)
				}
				return
			}
			var refusal *crdguard.RefusalError
			if err == nil || err.step != version || !errors.As(err.err, &refusal) || refusal.Reason != crdguard.ForeignManager {
				t.Errorf("%s: error %v, want a refusal of the version", tc.reason, err)
			}
		})
	}
}
