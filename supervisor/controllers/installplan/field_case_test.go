package installplan

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"

	"github.com/chandlery/chandlery/supervisor/api/scheme"
)

func TestCaseMismatches(t *testing.T) {
	kinds, err := scheme.New()
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		manifest string
		want     map[string]string
	}{
		"right":                {manifest: `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"Role","metadata":{"name":"x"},"rules":[{"verbs":["get"]}]}`},
		"at the top":           {`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"Role","Rules":[]}`, map[string]string{"Rules": "rules"}},
		"in a list":            {`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"Role","rules":[{},{"Verbs":[]}]}`, map[string]string{"rules[1].Verbs": "verbs"}},
		"in metadata":          {`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"Labels":{}}}`, map[string]string{"metadata.Labels": "labels"}},
		"below a pointer":      {`{"apiVersion":"policy/v1","kind":"PodDisruptionBudget","spec":{"selector":{"matchlabels":{}}}}`, map[string]string{"spec.selector.matchlabels": "matchLabels"}},
		"not a field at all":   {manifest: `{"apiVersion":"v1","kind":"Service","spec":{"bogus":1}}`},
		"keys that are chosen": {manifest: `{"apiVersion":"v1","kind":"ConfigMap","data":{"Data":"x","data":"y"}}`},
		"of the wrong type":    {manifest: `{"apiVersion":"v1","kind":"Service","spec":[{"Ports":1}],"metadata":"x"}`},
		"a kind of others":     {manifest: `{"apiVersion":"monitoring.coreos.com/v1","kind":"ServiceMonitor","Spec":{}}`},
		"in a schema": {`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","spec":{"versions":[{"schema":{"openapiV3Schema":{},"openAPIV3Schema":{"properties":{"Type":{"Type":"object"}}}}}]}}`, map[string]string{
			"spec.versions[0].schema.openapiV3Schema":                      "openAPIV3Schema",
			"spec.versions[0].schema.openAPIV3Schema.properties.Type.Type": "type",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			u := &unstructured.Unstructured{}
			if err := json.Unmarshal([]byte(tt.manifest), &u.Object); err != nil {
				t.Fatal(err)
			}
			got := caseMismatches(kinds, u)
			if len(got) == 0 {
				got = nil
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("fields (-want +got):\n%s", diff)
			}
		})
	}
}
