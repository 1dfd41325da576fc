package olmpeer

import (
	"context"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/chandlery/chandlery/test/buildcache"
	"github.com/chandlery/chandlery/test/helm"
	"github.com/chandlery/chandlery/test/images"
)

// Release is what an administrator installs: the image of OLM, and its manifests.
type Release struct {
	Chart

	// Image has all programs of OLM. Push it as ReleaseImage.
	Image v1.Image
}

// Chart is OLM's chart.
type Chart struct {
	// Dir is the folder of the chart, and values the file with the values of a release.
	Dir, values string
}

// ReleaseImage is the name of the image in the manifests, and ReleaseRepository its part that a registry of nodes needs.
const (
	ReleaseImage      = "quay.io/" + ReleaseRepository
	ReleaseRepository = "operator-framework/olm:v0.46.0"
)

// BuildRelease builds the image of OLM unless the cache has its programs, and finds OLM's chart. It builds the
// programs of this repository into a folder. It writes progress.
func BuildRelease(ctx context.Context, dir string, progress io.Writer) (*Release, error) {
	files, err := buildUtilities(ctx, dir, progress)
	if err != nil {
		return nil, fmt.Errorf("building OLM's utilities: %w", err)
	}
	source, err := buildcache.SourceDir(helperModule)
	if err != nil {
		return nil, fmt.Errorf("building OLM's release: %w", err)
	}
	names := []string{operatorProgram, catalogProgram, packageProgram}
	module := buildcache.Module{Name: "olm", Dir: source, Tags: buildTags()}
	for _, name := range names {
		module.Programs = append(module.Programs, buildcache.Program{Name: name, Package: peerModule + "/cmd/" + name})
	}
	built, err := buildcache.Build(ctx, module, progress)
	if err != nil {
		return nil, fmt.Errorf("building OLM's release: %w", err)
	}
	for _, name := range names {
		files[name] = filepath.Join(built, name)
	}
	r := &Release{}
	if r.Chart, err = FindChart(ctx); err != nil {
		return nil, err
	}
	r.Image, err = images.Programs(v1.Config{Entrypoint: []string{"/bin/olm"}, User: imageUser}, files)
	return r, err //nolint:wrapcheck // names the program
}

// FindChart finds OLM's chart.
func FindChart(ctx context.Context) (Chart, error) {
	source, err := buildcache.SourceDir(helperModule)
	if err != nil {
		return Chart{}, fmt.Errorf("finding OLM's chart: %w", err)
	}
	module, err := buildcache.ModuleDir(ctx, buildcache.Module{Name: "olm", Dir: source}, peerModule)
	if err != nil {
		return Chart{}, fmt.Errorf("finding OLM's chart: %w", err)
	}
	deploy := filepath.Join(module, "deploy")
	return Chart{Dir: filepath.Join(deploy, "chart"), values: filepath.Join(deploy, "upstream", "values.yaml")}, nil
}

// Manifests returns the manifests of the release: those that OLM's release script makes of its chart. Settings, such as
// namespace=olm, replace values of the release.
func (c Chart) Manifests(ctx context.Context, settings ...string) ([]byte, error) {
	program, err := helm.Program()
	if err != nil {
		return nil, err //nolint:wrapcheck // says what failed
	}
	args := []string{"template", "olm", c.Dir, "--namespace", Namespace, "--values", c.values, "--include-crds"}
	for _, part := range []string{"olm", "catalog", "package"} {
		args = append(args, "--set", part+".image.ref="+ReleaseImage)
	}
	for _, setting := range settings {
		args = append(args, "--set", setting)
	}
	var stderr strings.Builder
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("rendering OLM's chart: %w\n%s", err, stderr.String())
	}
	return out, nil
}
