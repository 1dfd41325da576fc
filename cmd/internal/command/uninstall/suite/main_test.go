package suite_test

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/go-logr/logr"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/chandlery/chandlery/test/controlplane"
	"github.com/chandlery/chandlery/test/programs"
)

// bin is the folder of the programs.
var bin string

func program(name string) string { return filepath.Join(bin, name) }

func TestMain(m *testing.M) {
	logf.SetLogger(logr.FromSlogHandler(slog.DiscardHandler))
	os.Exit(programs.Main(func(dir string) int {
		bin = dir
		return controlplane.Main(m, controlplane.Options{})
	}, "./cmd/registry", "./cmd/supervisor", "./cmd/kubectl-chandlery"))
}
