package e2e

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/chandlery/chandlery/test/controlplane"
	"github.com/chandlery/chandlery/test/process"
	"github.com/chandlery/chandlery/test/programs"
	"github.com/chandlery/chandlery/test/testenv"
)

// leaseNamespace holds the Lease that the supervisors compete for.
const leaseNamespace = "default"

// Short lease times, for many hand-overs. They have the order of the defaults.
// A renewal may take half of the deadline. With less than these, a leader lost its Lease while
// other suites kept the processors busy.
const (
	leaseDuration = 8 * time.Second
	renewDeadline = 5 * time.Second
	retryPeriod   = 500 * time.Millisecond
)

// bin is the folder with the programs, built once for the package.
var bin string

func TestMain(m *testing.M) {
	os.Exit(programs.Main(func(dir string) int {
		bin = dir
		return testenv.Main(m, controlplane.Options{AuditWrites: true}, testenv.InstallCRDsWith(filepath.Join(dir, "supervisor")))
	}, "./cmd/registry", "./cmd/supervisor"))
}

// startSupervisor runs a supervisor with an identity.
func startSupervisor(t *testing.T, identity string) *process.Process {
	t.Helper()
	return startSupervisorAs(t, identity, controlplane.Get(t).Kubeconfig())
}

// startSupervisorAs runs a supervisor with an identity and a kubeconfig.
func startSupervisorAs(t *testing.T, identity, kubeconfig string, more ...string) *process.Process {
	t.Helper()
	return programs.Start(t, identity, filepath.Join(bin, "supervisor"), append([]string{
		"run",
		"--kubeconfig", kubeconfig,
		"--identity", identity,
		"--leader-election-namespace", leaseNamespace,
		"--lease-duration", leaseDuration.String(),
		"--renew-deadline", renewDeadline.String(),
		"--retry-period", retryPeriod.String(),
		"--catalog-refresh-interval", "1s",
		"--metrics-address", "0", "--health-address", "0",
	}, more...)...)
}
