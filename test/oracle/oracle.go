package oracle

import (
	"context"
	"fmt"
	"io"
	"path/filepath"

	"github.com/chandlery/chandlery/test/buildcache"
	"github.com/chandlery/chandlery/test/process"
)

const (
	helperModule = "test/oracle/opm"
	program      = "opm"
)

// Build returns the path of opm. It builds opm unless the cache has it. It writes progress.
func Build(ctx context.Context, progress io.Writer) (string, error) {
	dir, err := buildcache.SourceDir(helperModule)
	if err != nil {
		return "", fmt.Errorf("building opm: %w", err)
	}
	binaries, err := buildcache.Build(ctx, buildcache.Module{
		Name:     program,
		Dir:      dir,
		Programs: []buildcache.Program{{Name: program, Package: "github.com/operator-framework/operator-registry/cmd/opm"}},
		Tags:     buildTags(),
	}, progress)
	if err != nil {
		return "", fmt.Errorf("building opm: %w", err)
	}
	return filepath.Join(binaries, program), nil
}

// ConfigMapServer is the name of the program that serves the catalog of a ConfigMap.
const ConfigMapServer = "configmap-server"

// BuildConfigMapServer returns the path of the program. It builds the program unless the cache has it, which needs a C
// compiler.
func BuildConfigMapServer(ctx context.Context, progress io.Writer) (string, error) {
	dir, err := buildcache.SourceDir(helperModule)
	if err != nil {
		return "", fmt.Errorf("building %s: %w", ConfigMapServer, err)
	}
	binaries, err := buildcache.Build(ctx, buildcache.Module{
		Name: ConfigMapServer,
		Dir:  dir,
		Programs: []buildcache.Program{{
			Name: ConfigMapServer, Package: "github.com/operator-framework/operator-registry/cmd/" + ConfigMapServer,
			LDFlags: "-linkmode external -extldflags -static",
		}},
		Tags: append(buildTags(), "osusergo", "netgo", "sqlite_omit_load_extension"),
		Cgo:  true,
	}, progress)
	if err != nil {
		return "", fmt.Errorf("building %s: %w", ConfigMapServer, err)
	}
	return filepath.Join(binaries, ConfigMapServer), nil
}

// buildTags returns tags that exclude image formats that need C libraries. Serving and validating
// do not use them.
func buildTags() []string {
	return []string{"containers_image_openpgp", "exclude_graphdriver_btrfs", "exclude_graphdriver_devicemapper"}
}

// Serve starts "opm serve" with a catalog directory. Its cache is in a separate directory, and its
// output in a file.
func Serve(ctx context.Context, opm, catalog, port, work string) (*process.Process, error) {
	args := []string{catalog, "--port", port, "--cache-dir", filepath.Join(work, "opm-cache"), "--cache-enforce-integrity=false"}
	return serve(ctx, opm, work, args)
}

// ServeCached starts "opm serve" with an existing cache, as in catalog images. opm exits if the
// cache does not match the catalog. The folder of an image has both.
func ServeCached(ctx context.Context, opm, image, port, work string) (*process.Process, error) {
	args := []string{
		filepath.Join(image, "configs"), "--port", port, "--cache-dir", filepath.Join(image, "tmp", "cache"), "--cache-enforce-integrity=true",
	}
	return serve(ctx, opm, work, args)
}

func serve(ctx context.Context, opm, work string, args []string) (*process.Process, error) {
	p, err := process.Start(ctx, process.Spec{
		Name: "opm serve",
		Path: opm,
		Args: append([]string{"serve", "--termination-log=", "--pprof-addr="}, args...),
		Log:  filepath.Join(work, "opm.log"),
	})
	if err != nil {
		return nil, fmt.Errorf("serving with opm: %w", err)
	}
	return p, nil
}
