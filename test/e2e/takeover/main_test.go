package takeover_test

import (
	"os"
	"testing"

	logf "sigs.k8s.io/controller-runtime/pkg/log"

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
		logf.SetLogger(testenv.Logger())
		return m.Run()
	}, "./cmd/registry", "./cmd/supervisor"))
}
