package suite_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/chandlery/chandlery/supervisor/plansteps"
)

// TestPlanCarriesWarningsAboutManifests has duplicate keys in a mapping, in JSON of the catalog and
// in YAML of a bundle image. The plan has the last value and the warning.
func TestPlanCarriesWarningsAboutManifests(t *testing.T) {
	for name, manifest := range map[string]string{
		"inline": `{"apiVersion":"operators.coreos.com/v1alpha1","kind":"ClusterServiceVersion","metadata":{"name":"lamp.v1"},
			"spec":{"displayName":"Candle","displayName":"Lamp","version":"1.0.0","install":{"strategy":"deployment","spec":{"deployments":[]}}}}`,
		"image": `
apiVersion: operators.coreos.com/v1alpha1
kind: ClusterServiceVersion
metadata: {name: lamp.v1}
spec:
  displayName: Candle
  version: 1.0.0
  install: {strategy: deployment, spec: {deployments: []}}
  displayName: Lamp
`,
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			lamp := w.lamp(1)
			lamp.Channels[0].Entries[0].Objects = []string{manifest}
			if name == "image" {
				images := newBlockedRegistry(t, "")
				images.push(bundleImage(t, manifest))
				lamp.Channels[0].Entries[0].Image, lamp.Channels[0].Entries[0].Objects = images.reference, nil
			}
			w.server.Serve(lamp)
			w.Create(w.subscription("my-lamp", "lamp", manual))
			w.supervise()
			p := w.onlyPlan(operatorsv1alpha1.InstallPlanPhaseRequiresApproval)
			if diff := cmp.Diff(map[int][]string{0: {`duplicate field "spec.displayName"`}}, plansteps.ManifestWarningsOf(p.Annotations)); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
			if !strings.Contains(p.Status.Plan[0].Resource.Manifest, `"displayName":"Lamp"`) {
				t.Errorf("the step has %s", p.Status.Plan[0].Resource.Manifest)
			}
		})
	}
}
