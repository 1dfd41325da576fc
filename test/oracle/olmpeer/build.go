// Package olmpeer runs the two controllers of Operator Lifecycle Manager as processes with a
// control plane. Benchmarks compare them with the supervisor.
package olmpeer

import (
	"context"
	"fmt"
	"io"
	"path/filepath"

	"github.com/chandlery/chandlery/test/buildcache"
)

const (
	helperModule = "test/oracle/olm"
	peerModule   = "github.com/operator-framework/operator-lifecycle-manager"

	// operatorProgram reconciles ClusterServiceVersions and OperatorGroups. catalogProgram
	// reconciles CatalogSources, Subscriptions and InstallPlans.
	operatorProgram = "olm"
	catalogProgram  = "catalog"
	// packageProgram serves PackageManifests.
	packageProgram = "package-server"
)

// Build returns the folder of the two programs. It builds them unless the cache has them. It writes progress.
func Build(ctx context.Context, progress io.Writer) (string, error) {
	dir, err := buildcache.SourceDir(helperModule)
	if err != nil {
		return "", fmt.Errorf("building OLM: %w", err)
	}
	programs, err := buildcache.Build(ctx, buildcache.Module{
		Name: "olm",
		Dir:  dir,
		Programs: []buildcache.Program{
			{Name: operatorProgram, Package: peerModule + "/cmd/olm"},
			{Name: catalogProgram, Package: peerModule + "/cmd/catalog"},
		},
		Tags: buildTags(),
	}, progress)
	if err != nil {
		return "", fmt.Errorf("building OLM: %w", err)
	}
	return programs, nil
}

// BuildPackageServer returns the path of OLM's package server. It builds the program unless the cache has it.
func BuildPackageServer(ctx context.Context, progress io.Writer) (string, error) {
	dir, err := buildcache.SourceDir(helperModule)
	if err != nil {
		return "", fmt.Errorf("building OLM's package server: %w", err)
	}
	programs, err := buildcache.Build(ctx, buildcache.Module{
		Name: "olm-package-server", Dir: dir, Tags: buildTags(),
		Programs: []buildcache.Program{{Name: packageProgram, Package: peerModule + "/cmd/" + packageProgram}},
	}, progress)
	if err != nil {
		return "", fmt.Errorf("building OLM's package server: %w", err)
	}
	return filepath.Join(programs, packageProgram), nil
}

// Version returns the version of OLM that Build builds, such as v0.46.0.
func Version() (string, error) {
	dir, err := buildcache.SourceDir(helperModule)
	if err != nil {
		return "", fmt.Errorf("finding the version of OLM: %w", err)
	}
	return buildcache.Required(dir, peerModule)
}

// buildTags returns tags that exclude image formats that need C libraries.
func buildTags() []string {
	return []string{"containers_image_openpgp", "exclude_graphdriver_btrfs", "exclude_graphdriver_devicemapper"}
}
