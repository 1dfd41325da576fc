package failover

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/chandlery/chandlery/supervisor"
	"github.com/chandlery/chandlery/test/buildcache"
	"github.com/chandlery/chandlery/test/nodes"
)

const (
	// systemNamespace is the namespace of the supervisors in the manifests.
	systemNamespace = "chandlery-system"
	// supervisorName is the name of their Deployment.
	supervisorName = "chandlery-supervisor"
	// CatalogNamespace is the namespace of global catalogs.
	CatalogNamespace = "olm"
	// patience is the deadline for conditions. A plain Deployment has all replicas again six
	// minutes after the loss of a node.
	patience = 8 * time.Minute
	// poll is the interval between checks.
	poll = 50 * time.Millisecond
)

// Scene is the product, installed on a bed of nodes.
type Scene struct {
	Bed    *nodes.Bed
	Client client.WithWatch

	bin      string
	progress io.Writer
}

// Install pushes the images to the bed's registry, applies the manifests of deploy/ with kubectl
// and waits until all supervisors are ready. It builds programs into dir.
func Install(ctx context.Context, bed *nodes.Bed, dir string, progress io.Writer) (*Scene, error) {
	c, err := NewClient(bed)
	if err != nil {
		return nil, err
	}
	s := &Scene{Bed: bed, Client: c, bin: dir, progress: progress}
	if err := s.build(ctx); err != nil {
		return nil, err
	}
	if err := errors.Join(PushPrograms(ctx, s.Bed), s.Bed.Images.PushIdle(ctx, sampleOperatorImage)); err != nil {
		return nil, err
	}
	manifests, err := buildcache.SourceDir("deploy")
	if err != nil {
		return nil, err
	}
	if err := s.Kubectl(ctx, "create", "-f", filepath.Join(manifests, "prerequisites", "namespace.yaml")); err != nil {
		return nil, err
	}
	if err := s.Kubectl(ctx, "apply", "--server-side", "-k", filepath.Join(manifests, "prerequisites")); err != nil {
		return nil, err
	}
	if err := s.Kubectl(ctx, "apply", "-k", manifests); err != nil {
		return nil, err
	}
	// The only difference to other clusters: the bed's registry uses plain HTTP.
	if err := s.Kubectl(ctx, "-n", systemNamespace, "set", "env", "deployment/"+supervisorName, "SUPERVISOR_IMAGE_PLAIN_HTTP=true"); err != nil {
		return nil, err
	}
	if err := s.SupervisorsStrong(ctx); err != nil {
		return nil, err
	}
	return s, nil
}

// NewClient returns a client of the bed's cluster, without the logs of its library.
func NewClient(bed *nodes.Bed) (client.WithWatch, error) {
	log.SetLogger(logr.Discard())
	scheme, err := supervisor.NewScheme()
	if err != nil {
		return nil, err
	}
	c, err := client.NewWithWatch(bed.Config(), client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("making a client of the bed: %w", err)
	}
	return c, nil
}

func (s *Scene) program(name string) string { return filepath.Join(s.bin, name) }

// build builds the client that calls catalogs.
func (s *Scene) build(ctx context.Context) error {
	root, err := buildcache.SourceDir(".")
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags=-s -w", "-o", s.program("caller"), "./test/caller/main")
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("building the client: %w\n%s", err, out)
	}
	return nil
}

// Kubectl runs kubectl on the bed's cluster.
func (s *Scene) Kubectl(ctx context.Context, args ...string) error {
	cmd := exec.CommandContext(ctx, s.Bed.Kubectl(), append([]string{"--kubeconfig", s.Bed.Kubeconfig()}, args...)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("kubectl %v: %w\n%s", args, err, out)
	}
	return nil
}

// Eventually waits until objection returns an empty text.
func Eventually(ctx context.Context, what string, objection func(context.Context) string) error {
	last := "nothing"
	err := wait.PollUntilContextTimeout(ctx, poll, patience, true, func(ctx context.Context) (bool, error) {
		if said := objection(ctx); ctx.Err() == nil {
			last = said
		}
		return last == "", nil
	})
	if err != nil {
		return fmt.Errorf("waiting for %s: %w; last seen: %s", what, err, last)
	}
	return nil
}

// supervisors returns the pods of the supervisors as a target.
func supervisors() Target {
	return Target{
		Namespace: systemNamespace, Service: supervisorName, Replicas: 2,
		Labels: map[string]string{"app.kubernetes.io/name": supervisorName},
	}
}

// SupervisorsStrong waits until every supervisor is ready.
func (s *Scene) SupervisorsStrong(ctx context.Context) error { return s.Strong(ctx, supervisors()) }
