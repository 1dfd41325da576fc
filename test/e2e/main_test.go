package e2e

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/chandlery/chandlery/test/buildcache"
	"github.com/chandlery/chandlery/test/controlplane"
	"github.com/chandlery/chandlery/test/ports"
	"github.com/chandlery/chandlery/test/process"
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
	os.Exit(run(m))
}

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "chandlery-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, "making a folder for the programs:", err)
		return 1
	}
	defer os.RemoveAll(dir)
	bin = dir
	return controlplane.Main(m, controlplane.Options{}, build, installCRDs)
}

// build makes the programs.
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

func installCRDs(ctx context.Context, cp *controlplane.ControlPlane) error {
	cmd := exec.CommandContext(ctx, filepath.Join(bin, "supervisor"), "install-crds", "--kubeconfig", cp.Kubeconfig())
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("installing the CustomResourceDefinitions: %w\n%s", err, out)
	}
	return nil
}

// start runs a program until the test ends.
func start(t *testing.T, name, program string, args ...string) *process.Process {
	t.Helper()
	p, err := process.Start(t.Context(), process.Spec{
		Name: name,
		Path: filepath.Join(bin, program),
		Args: args,
		Log:  filepath.Join(t.ArtifactDir(), name+".log"),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Kill(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// startSupervisor runs a supervisor of that identity.
func startSupervisor(t *testing.T, identity string) *process.Process {
	t.Helper()
	return start(t, identity, "supervisor", "run",
		"--kubeconfig", controlplane.Get(t).Kubeconfig(),
		"--identity", identity,
		"--leader-election-namespace", leaseNamespace,
		"--lease-duration", leaseDuration.String(),
		"--renew-deadline", renewDeadline.String(),
		"--retry-period", retryPeriod.String(),
		"--catalog-refresh-interval", "1s",
		"--metrics-address", "0", "--health-address", "0")
}

// startRegistry serves a catalog directory and gives the address.
func startRegistry(t *testing.T, dir string) string {
	t.Helper()
	address := ports.Address(t)
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	start(t, "registry", "registry", "serve", dir, "--host", host, "--port", port, "--metrics-address", "0", "--termination-log", "")
	return address
}
