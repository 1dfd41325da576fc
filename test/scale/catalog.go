package scale

import (
	"embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

const (
	// packageName is the one package of the catalog.
	packageName = "widget"
	// The files of a bundle.
	fileCSV, fileCRD, fileSettings = "csv.yaml", "crd.yaml", "settings.yaml"
)

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

// plainManifests returns the manifests of a plain bundle, which has no ConfigMap.
func plainManifests(pkg string) (map[string]string, error) {
	texts, err := Manifests(pkg)
	delete(texts, fileSettings)
	return texts, err
}

// property is one property of a bundle in a file-based catalog.
type property struct {
	Type  string `json:"type"`
	Value any    `json:"value"`
}

// CatalogText returns a file-based catalog with one package, whose one bundle is the image, or has
// the manifests inline where the image is empty.
func CatalogText(pkg, image string, manifests map[string]string) ([]byte, error) {
	properties := []property{
		{"olm.package", map[string]string{"packageName": pkg, "version": "1.0.0"}},
		{"olm.gvk", map[string]string{"group": pkg + ".example.com", "kind": "Widget", "version": "v1"}},
	}
	if image == "" {
		for _, file := range slices.Sorted(maps.Keys(manifests)) {
			object, err := yaml.YAMLToJSON([]byte(manifests[file]))
			if err != nil {
				return nil, fmt.Errorf("reading manifest %s of %s: %w", file, pkg, err)
			}
			properties = append(properties, property{"olm.bundle.object", map[string]string{"data": base64.StdEncoding.EncodeToString(object)}})
		}
	}
	version := pkg + ".v1.0.0"
	var text []byte
	for _, blob := range []any{
		map[string]any{"schema": "olm.package", "name": pkg, "defaultChannel": "stable"},
		map[string]any{"schema": "olm.channel", "package": pkg, "name": "stable", "entries": []any{map[string]string{"name": version}}},
		map[string]any{"schema": "olm.bundle", "package": pkg, "name": version, "image": image, "properties": properties},
	} {
		one, err := json.Marshal(blob)
		if err != nil {
			return nil, fmt.Errorf("encoding package %s: %w", pkg, err)
		}
		text = append(append(text, one...), '\n')
	}
	return text, nil
}
