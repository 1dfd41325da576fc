package docs

import (
	"regexp"
	"strings"
	"testing"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"sigs.k8s.io/yaml"
)

// TestYAML decodes the YAML code blocks, and objects of our kinds with their fields.
func TestYAML(t *testing.T) {
	t.Parallel()
	objects := 0
	for _, page := range pages(t) {
		for _, fence := range page.Fences {
			if fence.Language != "yaml" {
				continue
			}
			var text strings.Builder
			for _, line := range fence.Content {
				text.WriteString(line.Text + "\n")
			}
			for _, document := range documents.Split(text.String(), -1) {
				object, err := decode(document)
				if err != nil {
					t.Errorf("%s:%d: %v in\n%s", page.Path, fence.Content[0].Line, err, document)
				}
				if object {
					objects++
				}
			}
		}
	}
	if objects < 3 {
		t.Errorf("%d objects of ours were found; there are more", objects)
	}
}

var documents = regexp.MustCompile(`(?m)^---$`)

// decode reports whether a text is an object of our kinds and returns its error.
func decode(text string) (bool, error) {
	var found any
	if err := yaml.Unmarshal([]byte(text), &found); err != nil {
		return false, err
	}
	fields, _ := found.(map[string]any) // the text may be a part of a list
	var into any
	switch fields["kind"] {
	case operatorsv1alpha1.CatalogSourceKind:
		into = &operatorsv1alpha1.CatalogSource{}
	case operatorsv1alpha1.SubscriptionKind:
		into = &operatorsv1alpha1.Subscription{}
	case operatorsv1.OperatorGroupKind:
		into = &operatorsv1.OperatorGroup{}
	default:
		return false, nil
	}
	return true, yaml.UnmarshalStrict([]byte(text), into)
}
