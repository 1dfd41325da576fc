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
	// packageName is the only package of the catalog.
	packageName = "widget"
	// channelStable gets each version. channelFirst has only the first one.
	channelStable, channelFirst = "stable", "first"
	// The files of a bundle.
	fileCSV, fileCRD, fileSettings = "csv.yaml", "crd.yaml", "settings.yaml"
)

// bundle holds the manifests of a package, in which PACKAGE stands for its name: an operator with a
// Deployment, a CustomResourceDefinition, a ConfigMap, and permissions in its namespace and in the
// cluster.
//
//go:embed bundle
var bundle embed.FS

// Manifests returns the manifests of a package by file name.
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

// CatalogBundle is one version of a package in a catalog.
type CatalogBundle struct {
	// Version is a semantic version.
	Version string
	// Image is the bundle's image. If it is empty, the manifests, by file, are inline.
	Image     string
	Manifests map[string]string
}

func (v CatalogBundle) properties(pkg string) ([]property, error) {
	all := []property{
		{"olm.package", map[string]string{"packageName": pkg, "version": v.Version}},
		{"olm.gvk", map[string]string{"group": pkg + ".example.com", "kind": "Widget", "version": "v1"}},
	}
	if v.Image != "" {
		return all, nil
	}
	for _, file := range slices.Sorted(maps.Keys(v.Manifests)) {
		object, err := yaml.YAMLToJSON([]byte(v.Manifests[file]))
		if err != nil {
			return nil, fmt.Errorf("reading manifest %s of %s: %w", file, pkg, err)
		}
		all = append(all, property{"olm.bundle.object", map[string]string{"data": base64.StdEncoding.EncodeToString(object)}})
	}
	return all, nil
}

// CatalogText returns a file-based catalog with one package. Each of its versions replaces the previous one.
// It has at least one version.
func CatalogText(pkg string, versions ...CatalogBundle) ([]byte, error) {
	var bundles, entries []any
	var before string
	for _, v := range versions {
		properties, err := v.properties(pkg)
		if err != nil {
			return nil, err
		}
		name := pkg + ".v" + v.Version
		entry := map[string]string{"name": name}
		if before != "" {
			entry["replaces"] = before
		}
		entries = append(entries, entry)
		bundles = append(bundles, map[string]any{"schema": "olm.bundle", "package": pkg, "name": name, "image": v.Image, "properties": properties})
		before = name
	}
	var text []byte
	for _, blob := range append([]any{
		map[string]any{"schema": "olm.package", "name": pkg, "defaultChannel": channelStable},
		map[string]any{"schema": "olm.channel", "package": pkg, "name": channelStable, "entries": entries},
		map[string]any{"schema": "olm.channel", "package": pkg, "name": channelFirst, "entries": entries[:1]},
	}, bundles...) {
		one, err := json.Marshal(blob)
		if err != nil {
			return nil, fmt.Errorf("encoding package %s: %w", pkg, err)
		}
		text = append(append(text, one...), '\n')
	}
	return text, nil
}

// updated returns the manifests of a version that replaces another.
func updated(manifests map[string]string, pkg, from, to string) map[string]string {
	next := map[string]string{}
	for file, text := range manifests {
		text = strings.ReplaceAll(text, "name: "+pkg+".v"+from, "name: "+pkg+".v"+to)
		next[file] = strings.ReplaceAll(text, "  version: "+from+"\n", "  version: "+to+"\n  replaces: "+pkg+".v"+from+"\n")
	}
	return next
}
