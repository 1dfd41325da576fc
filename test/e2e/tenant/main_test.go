package tenant_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/chandlery/chandlery/test/controlplane"
	"github.com/chandlery/chandlery/test/programs"
	"github.com/chandlery/chandlery/test/testenv"
)

const (
	// patience is the deadline for conditions.
	patience = testenv.Patience
	// home is the namespace of the supervisors.
	home = testenv.SupervisorNamespace
)

// bin is the folder with the programs, built once for the package.
var bin string

func TestMain(m *testing.M) {
	os.Exit(programs.Main(func(dir string) int {
		bin = dir
		return testenv.Main(m, controlplane.Options{Nodes: 1}, testenv.InstallCRDsWith(filepath.Join(dir, "supervisor")),
			testenv.Deploy("rbac/supervisor.yaml", "rbac/leases.yaml", "prerequisites/users.yaml"))
	}, "./cmd/registry", "./cmd/supervisor"))
}
