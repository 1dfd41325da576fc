package clusterserviceversion

import (
	"testing"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"

	"github.com/chandlery/chandlery/supervisor/api"
)

// TestStaleHash checks the sentence about a Deployment that is not the wanted one.
func TestStaleHash(t *testing.T) {
	deployment := func(hash string, annotations map[string]string) *appsv1.Deployment {
		d := &appsv1.Deployment{}
		d.Name, d.Labels, d.Spec.Template.Annotations = "kettle", map[string]string{api.LabelDeploymentHash: hash}, annotations
		return d
	}
	on := map[string]string{"mesh": "on"}
	for name, tc := range map[string]struct {
		hash        string
		annotations map[string]string
		want        string
	}{
		"Same":    {"b", nil, ""},
		"NoHash":  {"", on, "deployment kettle doesn't have a spec hash, update it"},
		"Changed": {"a", on, "deployment changed old hash=a, new hash=b"},
		"None":    {"a", nil, "no annotations found on deployment"},
		"Missing": {"a", map[string]string{"team": "a"}, "annotations on deployment does not contain expected key: mesh"},
		"Other":   {"a", map[string]string{"mesh": "off"}, "unexpected annotation on deployment. Expected mesh:on, found mesh:off"},
	} {
		csv := &operatorsv1alpha1.ClusterServiceVersion{}
		// The pods do not get the last one.
		csv.Annotations = map[string]string{"mesh": "on", "chandlery.dev/skip-cleanup": "true"}
		if got := staleHash(csv, deployment(tc.hash, tc.annotations), deployment("b", on)); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}
