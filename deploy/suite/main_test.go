package suite_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/chandlery/chandlery/test/controlplane"
	"github.com/chandlery/chandlery/test/programs"
	"github.com/chandlery/chandlery/test/testenv"
)

// registryProgram is the path of the registry. It is built once for the package.
var registryProgram string

func TestMain(m *testing.M) {
	os.Exit(programs.Main(func(dir string) int {
		registryProgram = filepath.Join(dir, "registry")
		return testenv.Main(m, controlplane.Options{NodeMonitorGracePeriod: 5 * time.Second})
	}, "./cmd/registry"))
}
