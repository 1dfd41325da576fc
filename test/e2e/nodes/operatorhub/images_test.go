package operatorhub_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/chandlery/chandlery/examples"
	"github.com/chandlery/chandlery/test/buildcache"
	"github.com/chandlery/chandlery/test/images"
	"github.com/chandlery/chandlery/test/nodes"
	"github.com/chandlery/chandlery/test/operatorsdk"
	"github.com/chandlery/chandlery/test/oracle"
)

// bundleRepository has the bundle images of OperatorHub.io, each with the name of its package and its version as tag.
const bundleRepository = "operatorhubio/"

// pushImages pushes the images for which the registry of the nodes answers: OperatorHub.io's catalog, its bundles,
// operators, and opm.
func pushImages(ctx context.Context, bed *nodes.Bed) error {
	opm, err := oracle.Build(ctx, os.Stderr)
	if err != nil {
		return err
	}
	bundles, err := bundleFolders()
	if err != nil {
		return err
	}
	catalog, err := catalogImage(ctx, opm, slices.Sorted(maps.Values(bundles)))
	if err != nil {
		return err
	}
	server, err := images.Programs(v1.Config{Entrypoint: []string{"/bin/opm"}}, map[string]string{"opm": opm})
	if err != nil {
		return err
	}
	sextant, err := images.Program(filepath.Join(bin, "operator"), "operator")
	if err != nil {
		return err
	}
	all := map[string]v1.Image{
		"operatorhubio/catalog:latest": catalog, operatorsdk.OpmRepository: server, "harbour/sextant:v1.0.0": sextant,
	}
	for name, dir := range bundles {
		if all[name], err = images.Bundle(os.DirFS(dir)); err != nil {
			return err
		}
	}
	for name, image := range all {
		if _, err := bed.Images.Push(ctx, image, name); err != nil {
			return err
		}
	}
	return errors.Join(bed.Images.PushIdle(ctx, "pause:3.10"), bed.Images.PushIdle(ctx, "harbour/buoy:v0.3.0"))
}

// bundleFolders returns the folders of bundles by the names of their images: the samples, and the operators of this package.
func bundleFolders() (map[string]string, error) {
	root, err := buildcache.SourceDir("examples/bundles")
	if err != nil {
		return nil, err
	}
	found := map[string]string{}
	tree := examples.Bundles()
	packages, err := examples.Packages(tree)
	if err != nil {
		return nil, err
	}
	for _, pkg := range packages {
		versions, err := examples.Versions(tree, pkg)
		if err != nil {
			return nil, err
		}
		for _, version := range versions {
			found[bundleRepository+pkg+":v"+version] = filepath.Join(root, pkg, version)
		}
	}
	for pkg, version := range map[string]string{"buoy": "0.3.0", "sextant": "1.0.0"} {
		found[bundleRepository+pkg+":v"+version] = filepath.Join("testdata", "bundles", pkg)
	}
	return found, nil
}

// catalogImage returns the image of the catalog with opm and its cache, as that of OperatorHub.io.
func catalogImage(ctx context.Context, opm string, bundles []string) (v1.Image, error) {
	root, err := buildcache.SourceDir("examples/bundles")
	if err != nil {
		return nil, err
	}
	rendered, err := render(ctx, append(bundles, "--image-ref-template", "quay.io/"+bundleRepository+"{{.Package}}:v{{.Version}}")...)
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{"bundles.yaml": rendered}
	for name, file := range map[string]string{
		"lantern": filepath.Join(root, "lantern", "catalog.yaml"), "compass": filepath.Join(root, "compass", "catalog.yaml"), "others": "testdata/catalog.yaml",
	} {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("reading packages and channels: %w", err)
		}
		files[name+".yaml"] = text
	}
	dir, cache := filepath.Join(bin, "hub"), filepath.Join(bin, "hub-cache")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, fmt.Errorf("making the folder of the catalog: %w", err)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			return nil, fmt.Errorf("writing the catalog: %w", err)
		}
	}
	if err := images.FillCache(ctx, opm, dir, cache); err != nil {
		return nil, err
	}
	return images.Opm(opm, os.DirFS(dir), os.DirFS(cache))
}

// render returns a catalog of bundles in YAML, as "catalog render" prints it.
func render(ctx context.Context, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, filepath.Join(bin, "catalog"), append([]string{"render", "--output", "yaml"}, args...)...)
	var report strings.Builder
	cmd.Stderr = &report
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("catalog render %s: %w\n%s", strings.Join(args, " "), err, report.String())
	}
	return out, nil
}
