package nodes

import (
	"context"
	"fmt"
	"io"

	"github.com/chandlery/chandlery/test/buildcache"
	"github.com/chandlery/chandlery/test/controlplane"
)

const containerdModule = "github.com/containerd/containerd/v2"

// programs are the folders of the programs of nodes.
type programs struct {
	kubernetes, containerd, pause string
}

// Build builds the programs of the control plane and of the nodes unless the cache has them. It
// writes a line to progress before and after each program that it builds.
func Build(ctx context.Context, progress io.Writer) error {
	_, err := build(ctx, progress)

	return err
}

func build(ctx context.Context, progress io.Writer) (programs, error) {
	var (
		p   programs
		err error
	)

	p.kubernetes, err = controlplane.BuildForNodes(ctx, progress)
	if err != nil {
		return programs{}, err
	}

	p.containerd, err = buildModule(ctx, progress, "test/nodes/containerd", buildcache.Module{
		Name: "containerd",
		Programs: []buildcache.Program{
			{Name: "containerd", Package: containerdModule + "/cmd/containerd"},
			{Name: "containerd-shim-runc-v2", Package: containerdModule + "/cmd/containerd-shim-runc-v2"},
			{Name: "ctr", Package: containerdModule + "/cmd/ctr"},
		},
		// These file systems need C libraries or do not occur on the nodes.
		Tags: []string{"no_btrfs", "no_zfs", "no_devmapper"},
	})
	if err != nil {
		return programs{}, err
	}

	p.pause, err = buildModule(ctx, progress, "test/nodes/pause", buildcache.Module{
		Name: "pause", Programs: []buildcache.Program{{Name: "pause", Package: "."}},
	})

	return p, err
}

// buildModule builds the module in a folder of the checkout.
func buildModule(ctx context.Context, progress io.Writer, folder string, m buildcache.Module) (string, error) {
	var err error

	m.Dir, err = buildcache.SourceDir(folder)
	if err != nil {
		return "", fmt.Errorf("build %s: %w", m.Name, err)
	}

	dir, err := buildcache.Build(ctx, m, progress)
	if err != nil {
		return "", fmt.Errorf("build %s: %w", m.Name, err)
	}

	return dir, nil
}
