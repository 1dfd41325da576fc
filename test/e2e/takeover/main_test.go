package takeover_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-logr/logr"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/chandlery/chandlery/test/buildcache"
	"github.com/chandlery/chandlery/test/controlplane"
)

const (
	// patience bounds the wait for anything that has to come true.
	patience = 90 * time.Second
	polling  = 100 * time.Millisecond
	// home is the namespace of the supervisors.
	home = "chandlery-system"
)

// bin is the folder with the programs, built once for the package.
var bin string

func TestMain(m *testing.M) {
	logf.SetLogger(logr.FromSlogHandler(slog.DiscardHandler))
	os.Exit(run(m))
}

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "chandlery-takeover-")
	if err != nil {
		fmt.Fprintln(os.Stderr, "making a folder for the programs:", err)
		return 1
	}
	defer os.RemoveAll(dir)
	bin = dir
	return controlplane.Main(m, controlplane.Options{}, build, prepare)
}

func build(ctx context.Context, _ *controlplane.ControlPlane) error {
	root, err := buildcache.SourceDir(".")
	if err != nil {
		return fmt.Errorf("finding the checkout: %w", err)
	}
	cmd := exec.CommandContext(ctx, "go", "build", "-o", bin+string(filepath.Separator), "./cmd/registry", "./cmd/supervisor")
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("building the programs: %w\n%s", err, out)
	}
	return nil
}

// prepare installs the definitions, and the rights of the supervisors.
func prepare(ctx context.Context, cp *controlplane.ControlPlane) error {
	for _, command := range [][]string{
		{filepath.Join(bin, "supervisor"), "install-crds", "--kubeconfig", cp.Kubeconfig()},
		{cp.Kubectl(), "--kubeconfig", cp.Kubeconfig(), "create", "namespace", home},
		{cp.Kubectl(), "--kubeconfig", cp.Kubeconfig(), "apply", "-f", "../../../deploy/rbac/supervisor.yaml", "-f", "../../../deploy/rbac/leases.yaml"},
	} {
		if out, err := exec.CommandContext(ctx, command[0], command[1:]...).CombinedOutput(); err != nil {
			return fmt.Errorf("%v: %w\n%s", command, err, out)
		}
	}
	return nil
}
