package suite_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/chandlery/chandlery/test/controlplane"
	"github.com/chandlery/chandlery/test/programs"
	"github.com/chandlery/chandlery/test/testenv"
)

// bin is the folder of the programs.
var bin string

func program(name string) string { return filepath.Join(bin, name) }

func TestMain(m *testing.M) {
	os.Exit(programs.Main(func(dir string) int {
		bin = dir
		return testenv.Main(m, controlplane.Options{})
	}, "./cmd/registry", "./cmd/supervisor", "./cmd/kubectl-chandlery"))
}
