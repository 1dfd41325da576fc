package transitions_test

import (
	"os"
	"testing"

	"k8s.io/klog/v2"

	"github.com/chandlery/chandlery/test/controlplane"
	"github.com/chandlery/chandlery/test/programs"
	"github.com/chandlery/chandlery/test/testenv"
)

// bin is the folder with the supervisor, built once for the package.
var bin string

func TestMain(m *testing.M) {
	klog.SetLogger(testenv.Logger())
	os.Exit(programs.Main(func(dir string) int {
		bin = dir
		return testenv.Main(m, controlplane.Options{Nodes: -1}, testenv.InstallCRDs)
	}, "./test/e2e/transitions/member"))
}
