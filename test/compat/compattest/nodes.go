package compattest

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/chandlery/chandlery/test/images"
	"github.com/chandlery/chandlery/test/nodes"
	"github.com/chandlery/chandlery/test/oracle/olmpeer"
	"github.com/chandlery/chandlery/test/process"
	"github.com/chandlery/chandlery/test/programs"
)

// The images in the registry of the nodes.
const (
	registryImage = "chandlery/registry"
	// operatorImage is the image of Cluster.CSV.
	operatorImage = "operator:1"
)

// grace bounds the end of a supervisor.
const grace = 20 * time.Second

// MainOnNodes is Main with a real node, on which catalogs and operators run. The supervisor runs
// beside it, on this machine. In the cluster of $COMPAT_KUBECONFIG, no case runs if no node is real.
func MainOnNodes(m *testing.M) int {
	if err := prepareTests(8); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if path := os.Getenv("COMPAT_KUBECONFIG"); path != "" {
		return runExternal(m, path, true)
	}
	return programs.Main(func(dir string) int {
		target.bin = dir
		if err := nodes.Check(context.Background()); err != nil { //nolint:forbidigo // A test binary has no caller to take a context from.
			target.missing = err.Error()
		}
		return nodes.Main(m, nodes.Options{Nodes: 1}, func(ctx context.Context, bed *nodes.Bed) error {
			if err := pushCatalogImages(ctx, bed); err != nil {
				return err
			}
			if err := bed.Images.PushIdle(ctx, operatorImage); err != nil {
				return err //nolint:wrapcheck // names the image
			}
			return start(ctx, bed.ControlPlane())
		})
	}, "./cmd/supervisor")
}

// pushCatalogImages builds and pushes the images with which the supervisor or OLM serves catalogs.
func pushCatalogImages(ctx context.Context, bed *nodes.Bed) error {
	if target.olm {
		pods, err := olmpeer.BuildPods(ctx, target.bin, os.Stderr)
		if err != nil {
			return err //nolint:wrapcheck // says what failed
		}
		target.registry, target.olmPods = pods.Opm, pods
		return pods.Push(ctx, bed.Images.Address())
	}
	registry, err := images.Local(ctx, registryImage)
	if err != nil {
		return err //nolint:wrapcheck // names the image
	}
	target.registry = registry
	_, err = bed.Images.Push(ctx, registry, registryImage+":latest")
	return err //nolint:wrapcheck // names the image
}

// needsOwnCluster skips a case that changes the whole cluster or its manager, unless the tests started the cluster.
func needsOwnCluster(t *testing.T) {
	t.Helper()
	if target.bin == "" {
		t.Skip("the rule changes the manager or the whole cluster, which the tests do not do in the cluster of $COMPAT_KUBECONFIG")
	}
}

// NodesOf returns the real nodes that the tests started, with their registry of images. It skips the case in the cluster of
// $COMPAT_KUBECONFIG.
func NodesOf(t *testing.T) *nodes.Bed {
	t.Helper()
	if target.bin == "" {
		t.Skip("the rule needs the registry of images that the tests start beside their own nodes")
	}
	return nodes.Get(t)
}

// Standby returns an action that starts a second supervisor, and one that kills the first supervisor, so that the second
// one becomes the leader. The second one remains.
func Standby() (start, kill Action) {
	var standby *process.Process
	start = func(ctx context.Context) (err error) {
		standby, err = runSupervisor(ctx, "standby", RetryWindow())
		return err
	}
	kill = func(context.Context) error {
		if err := target.started.Kill(); err != nil {
			return fmt.Errorf("killing the supervisor: %w", err)
		}
		target.started = standby
		return nil
	}
	return start, kill
}

// CatalogImage returns an image of a catalog that Chandlery's registry serves, or opm if OLM is tested.
func CatalogImage(t *testing.T, catalog fs.FS) v1.Image {
	t.Helper()
	image, err := images.Registry(Registry(t), catalog)
	if err != nil {
		t.Fatal(err)
	}
	return image
}

// Registry returns the image on which catalog images are based: Chandlery's registry, or opm if OLM is tested. It skips the case as NodesOf does.
func Registry(t *testing.T) v1.Image {
	t.Helper()
	NodesOf(t)
	return target.registry
}
