package transitions_test

import (
	"context"
	"io"
	"log/slog"
	"os"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/chandlery/chandlery/supervisor"
	"github.com/chandlery/chandlery/test/controlplane"
	"github.com/chandlery/chandlery/test/programs"
)

// bin is the folder with the supervisor, built once for the package.
var bin string

func TestMain(m *testing.M) {
	handler := slog.DiscardHandler
	if os.Getenv("CHANDLERY_TEST_LOGS") != "" {
		handler = slog.NewTextHandler(os.Stderr, nil)
	}
	logf.SetLogger(logr.FromSlogHandler(handler))
	klog.SetLogger(logr.FromSlogHandler(handler))
	os.Exit(programs.Main(func(dir string) int {
		bin = dir
		return controlplane.Main(m, controlplane.Options{Nodes: -1}, func(ctx context.Context, cp *controlplane.ControlPlane) error {
			return supervisor.InstallCRDs(ctx, cp.Config(), io.Discard)
		})
	}, "./test/e2e/transitions/member"))
}
