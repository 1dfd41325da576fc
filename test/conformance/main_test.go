package conformance

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/chandlery/chandlery/test/programs"
)

// bin is the folder with the programs, built once for the package.
var bin string

func TestMain(m *testing.M) {
	os.Exit(programs.Main(func(dir string) int {
		bin = dir
		return m.Run()
	}, "./cmd/registry", "./cmd/catalog"))
}

func catalogProgram() string { return filepath.Join(bin, "catalog") }
