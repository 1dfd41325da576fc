package examples

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
)

// Schemas and property types of file-based catalogs.
const (
	schemaChannel = "olm.channel"
	schemaBundle  = "olm.bundle"

	propertyPackage = "olm.package"
	propertyGVK     = "olm.gvk"
	propertyObject  = "olm.bundle.object"
)

// property is one property of a bundle.
type property struct {
	Type  string `json:"type"`
	Value any    `json:"value"`
}

// manifest is what Render needs to know of the manifests of a version.
type manifest struct {
	Kind     string `json:"kind"`
	Metadata struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Spec struct {
		Group string `json:"group"`
		Names struct {
			Kind string `json:"kind"`
		} `json:"names"`
		Versions []struct {
			Name string `json:"name"`
		} `json:"versions"`
	} `json:"spec"`
}

// bundle makes the olm.bundle blob of one version: its identity, the APIs it
// provides and its manifests.
func bundle(tree fs.FS, pkg, version string) (map[string]any, error) {
	files, err := fs.Glob(tree, path.Join(pkg, version, "manifests", "*.yaml"))
	if err != nil {
		return nil, fmt.Errorf("listing the manifests of %s %s: %w", pkg, version, err)
	}
	var name string
	properties := []property{{propertyPackage, map[string]string{"packageName": pkg, "version": version}}}
	objects := make([]property, 0, len(files))
	for _, file := range files {
		found, err := documents(tree, file)
		if err != nil {
			return nil, err
		}
		for _, document := range found {
			text, m, err := encode(document)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", file, err)
			}
			if m.Kind == "ClusterServiceVersion" {
				name = m.Metadata.Name
			}
			properties = append(properties, provided(m)...)
			objects = append(objects, property{propertyObject, map[string]string{"data": base64.StdEncoding.EncodeToString(text)}})
		}
	}
	if name == "" {
		return nil, fmt.Errorf("folder %s: add a ClusterServiceVersion", path.Join(pkg, version))
	}
	return map[string]any{
		"schema": schemaBundle, "package": pkg, "name": name, "properties": append(properties, objects...),
	}, nil
}

// encode returns a manifest as JSON, and what is known of it.
func encode(document map[string]any) ([]byte, manifest, error) {
	var m manifest
	text, err := json.Marshal(document)
	if err != nil {
		return nil, m, fmt.Errorf("encoding the manifest: %w", err)
	}
	if err := json.Unmarshal(text, &m); err != nil {
		return nil, m, fmt.Errorf("reading the manifest: %w", err)
	}
	return text, m, nil
}

// provided returns a property for each API version that a definition serves.
func provided(m manifest) []property {
	if m.Kind != "CustomResourceDefinition" {
		return nil
	}
	found := make([]property, 0, len(m.Spec.Versions))
	for _, version := range m.Spec.Versions {
		gvk := map[string]string{"group": m.Spec.Group, "kind": m.Spec.Names.Kind, "version": version.Name}
		found = append(found, property{propertyGVK, gvk})
	}
	return found
}

// restrict returns the package and channel blobs with only the entries of the
// named bundles; channels left without entries are dropped.
func restrict(blobs []map[string]any, bundles []string) ([]map[string]any, error) {
	var kept []map[string]any
	for _, blob := range blobs {
		if blob["schema"] != schemaChannel {
			kept = append(kept, blob)
			continue
		}
		entries, ok := blob["entries"].([]any)
		if !ok {
			return nil, fmt.Errorf("channel %v: give it a list of entries", blob["name"])
		}
		entries = slices.DeleteFunc(entries, func(entry any) bool {
			fields, _ := entry.(map[string]any)
			name, _ := fields["name"].(string)
			return !slices.Contains(bundles, name)
		})
		if len(entries) > 0 {
			blob["entries"] = entries
			kept = append(kept, blob)
		}
	}
	if len(kept) == 0 {
		return nil, errors.New("catalog.yaml holds neither package nor channel")
	}
	return kept, nil
}
