package main

import (
	"context"
	"embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"sigs.k8s.io/yaml"

	"github.com/chandlery/chandlery/bundles/image/assembly"
	"github.com/chandlery/chandlery/bundles/image/layer"
	"github.com/chandlery/chandlery/deploy/images"
)

// bundleFiles are the manifests of every package, which write PACKAGE for its name:
// an operator with a Deployment, a CustomResourceDefinition, a ConfigMap, and rights
// in its namespace and in the cluster.
//
//go:embed bundle
var bundleFiles embed.FS

// manifests gives the manifests of a package, by the names of their files.
func manifests(pkg string) (map[string]string, error) {
	entries, err := bundleFiles.ReadDir("bundle")
	if err != nil {
		return nil, fmt.Errorf("reading the manifests: %w", err)
	}
	texts := make(map[string]string, len(entries))
	for _, e := range entries {
		text, err := bundleFiles.ReadFile("bundle/" + e.Name())
		if err != nil {
			return nil, fmt.Errorf("reading the manifests: %w", err)
		}
		texts[e.Name()] = strings.ReplaceAll(string(text), "PACKAGE", pkg)
	}
	return texts, nil
}

// property is one property of a bundle in a file-based catalog.
type property struct {
	Type  string `json:"type"`
	Value any    `json:"value"`
}

// writePackage adds a package to a catalog, with one bundle: its manifests are in the
// image, or inline where none is given.
func writePackage(catalog, pkg, image string) error {
	texts, err := manifests(pkg)
	if err != nil {
		return err
	}
	properties := []property{
		{"olm.package", map[string]string{"packageName": pkg, "version": "1.0.0"}},
		{"olm.gvk", map[string]string{"group": pkg + ".example.com", "kind": "Widget", "version": "v1"}},
	}
	if image == "" {
		for _, file := range slices.Sorted(maps.Keys(texts)) {
			object, err := yaml.YAMLToJSON([]byte(texts[file]))
			if err != nil {
				return fmt.Errorf("reading a manifest of %s: %w", pkg, err)
			}
			properties = append(properties, property{"olm.bundle.object", map[string]string{"data": base64.StdEncoding.EncodeToString(object)}})
		}
	}
	bundle := pkg + ".v1.0.0"
	var text []byte
	for _, blob := range []any{
		map[string]any{"schema": "olm.package", "name": pkg, "defaultChannel": "stable"},
		map[string]any{"schema": "olm.channel", "package": pkg, "name": "stable", "entries": []any{map[string]string{"name": bundle}}},
		map[string]any{"schema": "olm.bundle", "package": pkg, "name": bundle, "image": image, "properties": properties},
	} {
		one, err := json.Marshal(blob)
		if err != nil {
			return fmt.Errorf("encoding package %s: %w", pkg, err)
		}
		text = append(append(text, one...), '\n')
	}
	if err := os.WriteFile(filepath.Join(catalog, pkg+".json"), text, 0o644); err != nil {
		return fmt.Errorf("writing the catalog: %w", err)
	}
	return nil
}

// pushBundle pushes the bundle image of a package to a registry that speaks plain
// HTTP, and gives its reference by digest.
func pushBundle(ctx context.Context, registry, pkg string) (string, error) {
	image, err := bundleImage(pkg)
	if err != nil {
		return "", err
	}
	repository, err := name.NewRepository(registry+"/"+pkg, name.Insecure)
	if err != nil {
		return "", fmt.Errorf("naming the bundle image of %s: %w", pkg, err)
	}
	digest, err := image.Digest()
	if err != nil {
		return "", fmt.Errorf("making the bundle image of %s: %w", pkg, err)
	}
	reference := repository.Digest(digest.String())
	if err := remote.Write(reference, image, remote.WithContext(ctx)); err != nil {
		return "", fmt.Errorf("pushing %s: %w", reference, err)
	}
	return reference.String(), nil
}

// bundleImage makes a bundle image as "opm alpha bundle build" would: manifests and
// metadata, a layer for each, and labels that say the same as the metadata.
func bundleImage(pkg string) (v1.Image, error) {
	texts, err := manifests(pkg)
	if err != nil {
		return nil, err
	}
	labels := map[string]string{
		"operators.operatorframework.io.bundle.mediatype.v1":       "registry+v1",
		"operators.operatorframework.io.bundle.manifests.v1":       "manifests/",
		"operators.operatorframework.io.bundle.metadata.v1":        "metadata/",
		"operators.operatorframework.io.bundle.package.v1":         pkg,
		"operators.operatorframework.io.bundle.channels.v1":        "stable",
		"operators.operatorframework.io.bundle.channel.default.v1": "stable",
	}
	annotations, err := yaml.Marshal(map[string]any{"annotations": labels})
	if err != nil {
		return nil, fmt.Errorf("encoding the metadata of %s: %w", pkg, err)
	}
	var files []layer.Entry
	for file, text := range texts {
		files = append(files, layer.File("manifests/"+file, []byte(text)))
	}
	var layers []v1.Layer
	for _, entries := range [][]layer.Entry{files, {layer.File("metadata/annotations.yaml", annotations)}} {
		l, err := layer.New(entries, time.Unix(0, 0).UTC())
		if err != nil {
			return nil, fmt.Errorf("making the bundle image of %s: %w", pkg, err)
		}
		layers = append(layers, l)
	}
	platform := images.Local()
	return assembly.Assemble("bench/installation", &v1.ConfigFile{
		OS: platform.OS, Architecture: platform.Architecture, Config: v1.Config{Labels: labels},
	}, layers...)
}
