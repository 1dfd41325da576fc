package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"sigs.k8s.io/yaml"

	"github.com/chandlery/chandlery/bundles/image/assembly"
	"github.com/chandlery/chandlery/bundles/image/layer"
	"github.com/chandlery/chandlery/deploy/images"
	"github.com/chandlery/chandlery/test/scale"
)

// writePackage adds a package with one bundle to a catalog. The manifests are in the image, or
// inline if image is empty.
func writePackage(catalog, pkg, image string) error {
	manifests, err := scale.Manifests(pkg)
	if err != nil {
		return err
	}
	text, err := scale.CatalogText(pkg, scale.CatalogBundle{Version: "1.0.0", Image: image, Manifests: manifests})
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(catalog, pkg+".json"), text, 0o644); err != nil {
		return fmt.Errorf("writing the catalog: %w", err)
	}
	return nil
}

// pushBundle pushes the bundle image of a package to a registry over plain HTTP and returns its
// reference by digest.
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

// bundleImage returns a bundle image like that of "opm alpha bundle build": manifests and metadata,
// a layer for each, and labels that match the metadata.
func bundleImage(pkg string) (v1.Image, error) {
	texts, err := scale.Manifests(pkg)
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
