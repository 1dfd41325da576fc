package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/chandlery/chandlery/test/controlplane"
	"github.com/chandlery/chandlery/test/process"
	"github.com/chandlery/chandlery/test/programs"
)

// leaseNamespace holds the Lease that the supervisors compete for.
const leaseNamespace = "default"

// Short lease times make a suite of many hand-overs end; the order between them
// is that of the defaults.
const (
	leaseDuration = 3 * time.Second
	renewDeadline = 2 * time.Second
	retryPeriod   = 500 * time.Millisecond
)

// bin is the folder with the programs, built once for the package.
var bin string

func TestMain(m *testing.M) {
	os.Exit(programs.Main(func(dir string) int {
		bin = dir
		return controlplane.Main(m, controlplane.Options{}, installCRDs)
	}, "./cmd/registry", "./cmd/supervisor"))
}

func installCRDs(ctx context.Context, cp *controlplane.ControlPlane) error {
	cmd := exec.CommandContext(ctx, filepath.Join(bin, "supervisor"), "install-crds", "--kubeconfig", cp.Kubeconfig())
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("installing the CustomResourceDefinitions: %w\n%s", err, out)
	}
	return nil
}

// startSupervisor runs a supervisor of that identity.
func startSupervisor(t *testing.T, identity string) *process.Process {
	t.Helper()
	return programs.Start(t, identity, filepath.Join(bin, "supervisor"), "run",
		"--kubeconfig", controlplane.Get(t).Kubeconfig(),
		"--identity", identity,
		"--leader-election-namespace", leaseNamespace,
		"--lease-duration", leaseDuration.String(),
		"--renew-deadline", renewDeadline.String(),
		"--retry-period", retryPeriod.String(),
		"--catalog-refresh-interval", "1s",
		"--metrics-address", "0", "--health-address", "0")
}
