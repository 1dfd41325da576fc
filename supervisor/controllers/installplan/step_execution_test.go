package installplan

import (
	"errors"
	"testing"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/chandlery/chandlery/supervisor/api"
)

// TestRefusesSubscriptionsOfBundles has steps for Subscriptions in the plan install-a. The author of a bundle
// chooses the annotations of its objects, and the planning marks such a step as unsupported.
func TestRefusesSubscriptionsOfBundles(t *testing.T) {
	const unknown, unsupported = operatorsv1alpha1.StepStatusUnknown, operatorsv1alpha1.StepStatusUnsupportedResource
	objects := &objectApplier{own: fake.NewClientBuilder().Build()}
	for name, tc := range map[string]struct {
		reason  string
		by      string
		status  operatorsv1alpha1.StepStatus
		refused bool
	}{
		"Generated": {"the plan generated it", "install-a", unknown, false},
		"Bundle":    {"it is from a bundle that names the plan", "install-a", unsupported, true},
		"OtherPlan": {"another plan generated it", "install-b", unknown, true},
		"Unmarked":  {"no plan generated it", "", unknown, true},
	} {
		u := parsed(t, `{"apiVersion":"operators.coreos.com/v1alpha1","kind":"Subscription","metadata":{"name":"tray"}}`)
		u.SetAnnotations(map[string]string{api.AnnotationGeneratedBy: tc.by})
		text, err := u.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		step := &operatorsv1alpha1.Step{Resolving: "lamp.v1", Status: tc.status, Resource: operatorsv1alpha1.StepResource{
			Group: operatorsv1alpha1.GroupName, Version: operatorsv1alpha1.GroupVersion, Kind: operatorsv1alpha1.SubscriptionKind,
			Name: "tray", Manifest: string(text),
		}}
		err = (&execution{namespace: "ops", plan: "install-a", content: &content{}, objects: objects}).checkKind(step)
		if tc.refused {
			if err := (&execution{namespace: "ops", plan: "restored", byOthers: true, content: &content{}, objects: objects}).checkKind(step); (err != nil) != (tc.status == unsupported) {
				t.Errorf("%s: in a plan of another client: error %v", name, err)
			}
		}
		if errors.Is(err, errUnsupported) != tc.refused || err != nil && !tc.refused {
			t.Errorf("%s: %s: error %v", name, tc.reason, err)
		}
	}
}
