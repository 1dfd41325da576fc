package transitions_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/chandlery/chandlery/supervisor"
	"github.com/chandlery/chandlery/test/buildcache"
	"github.com/chandlery/chandlery/test/controlplane"
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
	os.Exit(run(m))
}

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "chandlery-transitions-")
	if err != nil {
		fmt.Fprintln(os.Stderr, "making a folder for the program:", err)
		return 1
	}
	defer os.RemoveAll(dir)
	bin = dir
	return controlplane.Main(m, controlplane.Options{Nodes: -1}, build, func(ctx context.Context, cp *controlplane.ControlPlane) error {
		return supervisor.InstallCRDs(ctx, cp.Config(), io.Discard)
	})
}

// build makes the program that the members of a crew run.
func build(ctx context.Context, _ *controlplane.ControlPlane) error {
	root, err := buildcache.SourceDir(".")
	if err != nil {
		return fmt.Errorf("finding the checkout: %w", err)
	}
	cmd := exec.CommandContext(ctx, "go", "build", "-o", filepath.Join(bin, "member"), "./test/e2e/transitions/member")
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("building the supervisor: %w\n%s", err, out)
	}
	return nil
}
