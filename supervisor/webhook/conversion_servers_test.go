package webhook

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
)

func TestConversionServers(t *testing.T) {
	conversion := func(deployment string, crds ...string) operatorsv1alpha1.WebhookDescription {
		return operatorsv1alpha1.WebhookDescription{Type: operatorsv1alpha1.ConversionWebhook, DeploymentName: deployment, ConversionCRDs: crds}
	}
	cases := map[string]struct {
		reason   string
		webhooks []operatorsv1alpha1.WebhookDescription
		want     map[string][]string // definitions by Service
	}{
		"None":  {"what converts nothing is named all the same", []operatorsv1alpha1.WebhookDescription{{Type: operatorsv1alpha1.ValidatingAdmissionWebhook, DeploymentName: "kettle"}}, map[string][]string{"kettle-service": nil}},
		"Wrong": {"a Deployment that is not declared had been", []operatorsv1alpha1.WebhookDescription{conversion("kettle", "cups.example.com")}, map[string][]string{"kettle-service": {"cups.example.com"}}},
		"Several": {
			"of each Deployment all",
			[]operatorsv1alpha1.WebhookDescription{conversion("pot", "a"), conversion("kettle", "b"), conversion("pot", "c", "d")},
			map[string][]string{"pot-service": {"a", "c", "d"}, "kettle-service": {"b"}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			csv := &operatorsv1alpha1.ClusterServiceVersion{}
			csv.Spec.WebhookDefinitions = tc.webhooks
			got := map[string][]string{}
			for _, s := range ConversionServers(csv) {
				got[s.ServiceName()] = nil
				for _, d := range s.Webhooks {
					got[s.ServiceName()] = append(got[s.ServiceName()], d.ConversionCRDs...)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\nConverters(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
