package authoring

import (
	"bytes"
	"log/slog"
	"net"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/registry"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/test/controlplane"
	"github.com/chandlery/chandlery/test/docs"
	"github.com/chandlery/chandlery/test/ports"
	"github.com/chandlery/chandlery/test/programs"
	"github.com/chandlery/chandlery/test/testenv"
)

// page is the tutorial, below the root of the repository.
const page = "docs/catalog-tutorial.md"

// root is the root of the repository.
const root = "../../.."

// timeout bounds the whole tutorial.
const timeout = 8 * time.Minute

// bin is the folder with the programs, built once for the package.
var bin string

func TestMain(m *testing.M) {
	os.Exit(programs.Main(func(dir string) int {
		bin = dir
		return testenv.Main(m, controlplane.Options{})
	}, "./cmd/registry", "./cmd/supervisor", "./cmd/catalog"))
}

// script returns the commands of the tutorial. Each must succeed.
func script(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, page))
	if err != nil {
		t.Fatal(err)
	}
	commands := []string{"set -eux"}
	parsed := docs.Parse(page, string(text))
	for _, fence := range parsed.Fences {
		if fence.Language != "sh" {
			continue
		}
		for _, line := range fence.Content {
			commands = append(commands, line.Text)
		}
	}
	if len(commands) < 20 {
		t.Fatalf("the tutorial has only %d lines of commands", len(commands))
	}
	return strings.Join(commands, "\n") + "\n"
}

// workplace creates a folder with the files of the repository that the tutorial needs.
func workplace(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(filepath.Join(dir, "examples"), os.DirFS(filepath.Join(root, "examples"))); err != nil {
		t.Fatal(err)
	}
	return dir
}

// environment returns the variables of the tutorial. Variables that are not in its text separate
// concurrent suites.
func environment(t *testing.T, images string) []string {
	t.Helper()
	cp := controlplane.Get(t)
	host, port, err := net.SplitHostPort(ports.Address(t))
	if err != nil {
		t.Fatal(err)
	}
	return append(os.Environ(),
		"PATH="+bin+":"+filepath.Dir(cp.Kubectl())+":"+os.Getenv("PATH"),
		"KUBECONFIG="+cp.Kubeconfig(), "REGISTRY="+images, "CATALOG_PORT="+port, "REGISTRY_PORT="+port, "REGISTRY_HOST="+host,
		"REGISTRY_METRICS_ADDRESS=0", "REGISTRY_PPROF_ADDR=0", "REGISTRY_TERMINATION_LOG=",
		"SUPERVISOR_METRICS_ADDRESS=0", "SUPERVISOR_HEALTH_ADDRESS=0", "SUPERVISOR_LEADER_ELECTION_NAMESPACE=default",
	)
}

// TestTutorial runs the commands of the tutorial unchanged.
func TestTutorial(t *testing.T) {
	images := httptest.NewServer(registry.New(registry.Logger(slog.NewLogLogger(slog.DiscardHandler, slog.LevelInfo))))
	t.Cleanup(images.Close)
	cmd := exec.CommandContext(t.Context(), "bash", "-c", script(t))
	cmd.Dir, cmd.Env = workplace(t), environment(t, images.Listener.Addr().String())
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	// Processes that the tutorial starts in the background end with the group.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 10 * time.Second
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) })
	ended := make(chan error, 1)
	go func() {
		state, err := cmd.Process.Wait()
		if err == nil && !state.Success() {
			err = &exec.ExitError{ProcessState: state}
		}
		ended <- err
	}()
	select {
	case err := <-ended:
		if err != nil {
			t.Fatalf("the tutorial failed: %v\n%s", err, tail(output.String()))
		}
	case <-time.After(timeout):
		t.Fatalf("the tutorial has not ended after %s\n%s", timeout, tail(output.String()))
	}
	installed := &operatorsv1alpha1.ClusterServiceVersion{}
	if err := controlplane.Client(t).Get(t.Context(), client.ObjectKey{Namespace: "lantern", Name: "lantern.v1.2.0"}, installed); err != nil {
		t.Fatal(err)
	}
	if installed.Status.Phase != operatorsv1alpha1.CSVPhaseSucceeded {
		t.Errorf("the version that was added last is %s", installed.Status.Phase)
	}
}

// tail returns the last lines of an output.
func tail(output string) string {
	lines := strings.Split(output, "\n")
	return strings.Join(lines[max(0, len(lines)-60):], "\n")
}
