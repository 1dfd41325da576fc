package scale

import (
	"embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"

	"sigs.k8s.io/yaml"
)

// packageName is the one package of the catalog.
const packageName = "widget"

// bundle holds the manifests of a package, in which PACKAGE stands for its name: an operator with a
// Deployment, a CustomResourceDefinition, a ConfigMap, and rights in its namespace and in the cluster.
//
//go:embed bundle
var bundle embed.FS

// Manifests returns the manifests of a package by the names of their files.
func Manifests(pkg string) (map[string]string, error) {
	entries, err := bundle.ReadDir("bundle")
	if err != nil {
		return nil, fmt.Errorf("reading the manifests: %w", err)
	}
	texts := make(map[string]string, len(entries))
	for _, e := range entries {
		text, err := bundle.ReadFile("bundle/" + e.Name())
		if err != nil {
			return nil, fmt.Errorf("reading the manifests: %w", err)
		}
		texts[e.Name()] = strings.ReplaceAll(string(text), "PACKAGE", pkg)
	}
	return texts, nil
}

// catalogText returns a file-based catalog with one package, whose one bundle has its manifests inline.
// The ConfigMap is left out: a plain bundle has none.
func catalogText(pkg string) ([]byte, error) {
	texts, err := Manifests(pkg)
	if err != nil {
		return nil, err
	}
	delete(texts, "settings.yaml")
	properties := []any{
		map[string]any{"type": "olm.package", "value": map[string]string{"packageName": pkg, "version": "1.0.0"}},
		map[string]any{"type": "olm.gvk", "value": map[string]string{"group": pkg + ".example.com", "kind": "Widget", "version": "v1"}},
	}
	for _, text := range texts {
		object, err := yaml.YAMLToJSON([]byte(text))
		if err != nil {
			return nil, fmt.Errorf("reading a manifest of %s: %w", pkg, err)
		}
		properties = append(properties, map[string]any{
			"type": "olm.bundle.object", "value": map[string]string{"data": base64.StdEncoding.EncodeToString(object)},
		})
	}
	version := pkg + ".v1.0.0"
	var text []byte
	for _, blob := range []any{
		map[string]any{"schema": "olm.package", "name": pkg, "defaultChannel": "stable"},
		map[string]any{"schema": "olm.channel", "package": pkg, "name": "stable", "entries": []any{map[string]string{"name": version}}},
		map[string]any{"schema": "olm.bundle", "package": pkg, "name": version, "image": "", "properties": properties},
	} {
		one, err := json.Marshal(blob)
		if err != nil {
			return nil, fmt.Errorf("encoding package %s: %w", pkg, err)
		}
		text = append(append(text, one...), '\n')
	}
	return text, nil
}
