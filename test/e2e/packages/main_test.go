package packages_test

import (
	"os"
	"testing"

	"github.com/chandlery/chandlery/test/controlplane"
	"github.com/chandlery/chandlery/test/programs"
	"github.com/chandlery/chandlery/test/testenv"
)

// home is the namespace of the supervisors.
const home = testenv.SupervisorNamespace

// bin is the folder with the programs, built once for the package.
var bin string

func TestMain(m *testing.M) {
	os.Exit(programs.Main(func(dir string) int {
		bin = dir
		return testenv.Main(m, controlplane.Options{Nodes: -1}, testenv.InstallCRDs,
			testenv.Deploy("rbac/supervisor.yaml", "rbac/leases.yaml"))
	}, "./cmd/registry", "./cmd/supervisor"))
}
