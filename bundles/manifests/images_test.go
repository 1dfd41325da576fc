package manifests_test

import (
	"strings"
	"testing"

	"github.com/chandlery/chandlery/bundles/manifests"
)

func TestImages(t *testing.T) {
	const deployments = `"install": {"spec": {"deployments": [
		{"spec": {"template": {"spec": {"containers": [{"image": "b"}, {"image": "a"}], "initContainers": [{"image": "c"}, {"name": "none"}]}}}},
		{"spec": {"template": {"spec": {"containers": [{"image": "a"}]}}}}]}}`
	for name, tt := range map[string]struct{ text, deployments, related, problem string }{
		"Both":          {text: `{"spec": {` + deployments + `, "relatedImages": [{"image": "z"}, {"image": "a"}, {"image": "y"}, {"image": "z"}, {}]}}`, deployments: "a b c", related: "y z"},
		"Metadata only": {text: `{"spec": {"install": {"spec": {"deployments": null}}, "relatedImages": [{"image": "z"}]}}`, related: "z"},
		"Malformed":     {text: `{"spec": {"install": {"spec": {"deployments": 1}}, "relatedImages": [{"image": "z"}]}}`, related: "z"},
		"Nothing":       {text: `{}`},
		"No JSON":       {text: `{`, problem: "decoding the ClusterServiceVersion: "},
	} {
		ofDeployments, related, err := manifests.Images([]byte(tt.text))
		if got := strings.Join(ofDeployments, " "); got != tt.deployments {
			t.Errorf("%s: Deployments have %q, want %q", name, got, tt.deployments)
		}
		if got := strings.Join(related, " "); got != tt.related {
			t.Errorf("%s: related are %q, want %q", name, got, tt.related)
		}
		if (err != nil) != (tt.problem != "") || err != nil && !strings.Contains(err.Error(), tt.problem) {
			t.Errorf("%s: error %v, want %q", name, err, tt.problem)
		}
	}
}
