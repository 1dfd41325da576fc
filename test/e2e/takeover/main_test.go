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

	"github.com/chandlery/chandlery/test/controlplane"
	"github.com/chandlery/chandlery/test/programs"
)

const (
	// patience is the deadline for conditions.
	patience = controlplane.Timeout
	polling  = 100 * time.Millisecond
	// home is the namespace of the supervisors.
	home = "chandlery-system"
)

// bin is the folder with the programs, built once for the package.
var bin string

func TestMain(m *testing.M) {
	logf.SetLogger(logr.FromSlogHandler(slog.DiscardHandler))
	os.Exit(programs.Main(func(dir string) int {
		bin = dir
		return controlplane.Main(m, controlplane.Options{}, prepare)
	}, "./cmd/registry", "./cmd/supervisor"))
}

// prepare installs the definitions and the permissions of the supervisors.
func prepare(ctx context.Context, cp *controlplane.ControlPlane) error {
	if err := programs.InstallCRDs(ctx, filepath.Join(bin, "supervisor"), cp.Kubeconfig()); err != nil {
		return err
	}
	for _, command := range [][]string{
		{cp.Kubectl(), "--kubeconfig", cp.Kubeconfig(), "create", "namespace", home},
		{cp.Kubectl(), "--kubeconfig", cp.Kubeconfig(), "apply", "-f", "../../../deploy/rbac/supervisor.yaml", "-f", "../../../deploy/rbac/leases.yaml"},
	} {
		if out, err := exec.CommandContext(ctx, command[0], command[1:]...).CombinedOutput(); err != nil {
			return fmt.Errorf("%v: %w\n%s", command, err, out)
		}
	}
	return nil
}
