// Command render writes the CustomResourceDefinitions of operators.coreos.com to the given folders.
// The module github.com/operator-framework/api defines them. The command is a step of `make
// generate`.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/operator-framework/api/crds"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

// maxApplied is below the size of an object that "kubectl apply" can store in its annotation: 256
// KiB for all annotations together.
const maxApplied = 250_000

const header = "# Made by `make generate` from github.com/operator-framework/api.\n"

func main() {
	if err := render(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "render:", err)
		os.Exit(1)
	}
}

// definitions returns all kinds of operators.coreos.com. Tools expect them together.
func definitions() []*apiextensionsv1.CustomResourceDefinition {
	return []*apiextensionsv1.CustomResourceDefinition{
		crds.CatalogSource(), crds.ClusterServiceVersion(), crds.InstallPlan(), crds.OLMConfig(),
		crds.OperatorCondition(), crds.OperatorGroup(), crds.Operator(), crds.Subscription(),
	}
}

var errNoFolder = errors.New("name the folders to write to")

func render(dirs []string) error {
	if len(dirs) == 0 {
		return errNoFolder
	}
	for _, crd := range definitions() {
		text, err := encode(crd)
		if err != nil {
			return fmt.Errorf("writing %s: %w", crd.Name, err)
		}
		for _, dir := range dirs {
			if err := os.WriteFile(filepath.Join(dir, crd.Name+".yaml"), text, 0o644); err != nil { //nolint:gosec // it is committed
				return fmt.Errorf("writing %s: %w", crd.Name, err)
			}
		}
	}
	return nil
}

// encode returns a definition as YAML. It omits the descriptions of Deployment fields if the
// definition is too large for "kubectl apply". "kubectl explain deployment" shows them as well.
func encode(crd *apiextensionsv1.CustomResourceDefinition) ([]byte, error) {
	for _, shorten := range []func(map[string]any){func(map[string]any) {}, withoutPodTexts} {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(crd)
		if err != nil {
			return nil, fmt.Errorf("encoding: %w", err)
		}
		unstructured.RemoveNestedField(content, "status")
		unstructured.RemoveNestedField(content, "metadata", "creationTimestamp")
		shorten(content)
		applied, err := json.Marshal(content)
		if err != nil {
			return nil, fmt.Errorf("encoding: %w", err)
		}
		if len(applied) > maxApplied {
			continue
		}
		text, err := yaml.Marshal(content)
		if err != nil {
			return nil, fmt.Errorf("encoding: %w", err)
		}
		return append([]byte(header), text...), nil
	}
	return nil, fmt.Errorf("it is larger than the %d bytes that kubectl apply can keep, also without the texts about Deployments", maxApplied)
}

// withoutPodTexts removes the descriptions below each field that holds a pod template.
func withoutPodTexts(node map[string]any) {
	for name, value := range node {
		switch child := value.(type) {
		case map[string]any:
			if name == "template" {
				withoutDescriptions(child)
			}
			withoutPodTexts(child)
		case []any:
			for _, one := range child {
				if inner, ok := one.(map[string]any); ok {
					withoutPodTexts(inner)
				}
			}
		}
	}
}

func withoutDescriptions(node map[string]any) {
	for name, value := range node {
		if text, is := value.(string); is && name == "description" && text != "" {
			delete(node, name)
		}
		if child, is := value.(map[string]any); is {
			withoutDescriptions(child)
		}
	}
}
