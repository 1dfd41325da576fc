package operatorhub_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestOneLiners runs the command that OperatorHub.io prints for three operators. One serves all namespaces and is copied
// to those of the others, and one has a webhook.
func TestOneLiners(t *testing.T) {
	operators := []listed{
		{name: "lantern", channel: "stable", version: "lantern.v1.2.0", global: true},
		{name: "buoy", channel: "alpha", version: "buoy.v0.3.0"},
		{name: "sextant", channel: "alpha", version: "sextant.v1.0.0"},
	}
	reach := serveHub(t, newScene(t).bed, operators)
	for _, l := range operators {
		newScene(t).kubectl(reach, "create", "-f", "https://operatorhub.io/install/"+l.name+".yaml")
	}
	for _, l := range operators {
		t.Run(l.name, func(t *testing.T) {
			s := newScene(t)
			s.installed(l.namespace(), "my-"+l.name, l.version)
			if out := s.kubectl(nil, "get", "csv", "-n", l.namespace()); !strings.Contains(out, l.version) {
				t.Errorf("the list lacks %s", l.version)
			}
			s.runningPod(l.namespace())
		})
	}
	t.Run("copies", func(t *testing.T) {
		s := newScene(t)
		for _, l := range operators[1:] {
			s.succeeded(l.namespace(), operators[0].version)
		}
	})
	t.Run("webhook", func(t *testing.T) {
		s := newScene(t)
		for name, spec := range map[string]map[string]any{"good": {}, "bad": {"refused": true}} {
			o := &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "harbour.example.com/v1", "kind": "Sextant", "metadata": map[string]any{"namespace": "my-sextant", "name": name}, "spec": spec,
			}}
			if err := s.Create(t.Context(), o); (err == nil) != (name == "good") {
				t.Errorf("creating the %s object: %v", name, err)
			}
		}
	})
}
