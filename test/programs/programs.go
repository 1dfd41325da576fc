// Package programs builds the programs of this repository from the current code and runs them during a test.
package programs

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/chandlery/chandlery/test/buildcache"
	"github.com/chandlery/chandlery/test/ports"
	"github.com/chandlery/chandlery/test/process"
)

// Build builds packages, named relative to the root of the repository, into a folder. Each program
// has the name of its package's folder. The flags match make build, so packages are compiled once
// for both. The go command caches what it links for a run, so all tests link a program once.
func Build(ctx context.Context, dir string, packages ...string) error {
	root, err := buildcache.SourceDir(".")
	if err != nil {
		return fmt.Errorf("building programs: %w", err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("building programs: %w", err)
	}
	for _, name := range packages {
		cmd := exec.CommandContext(ctx, "go", "run", "-trimpath", "-ldflags=-s -w", "-exec", "cp -f", name, filepath.Join(dir, filepath.Base(name)))
		cmd.Dir = root
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("building %s: %w\n%s", name, err, out)
		}
	}
	return nil
}

// Main builds packages into a folder, runs the tests of a package with this folder, removes the
// folder and returns the exit code for TestMain.
func Main(run func(dir string) int, packages ...string) int {
	dir, err := os.MkdirTemp("", "chandlery-programs-")
	if err != nil {
		fmt.Fprintln(os.Stderr, "making a folder for programs:", err)
		return 1
	}
	defer os.RemoveAll(dir)     //nolint:errcheck // it is a temporary folder
	ctx := context.Background() //nolint:forbidigo // A test binary has no caller to take a context from.
	if err := Build(ctx, dir, packages...); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return run(dir)
}

// InstallCRDs installs the CustomResourceDefinitions into the cluster of a kubeconfig with a
// supervisor, as a user does.
func InstallCRDs(ctx context.Context, supervisor, kubeconfig string) error {
	cmd := exec.CommandContext(ctx, supervisor, "install-crds", "--kubeconfig", kubeconfig)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("installing the CustomResourceDefinitions: %w\n%s", err, out)
	}
	return nil
}

// Registry builds the registry for one test and returns its path.
func Registry(tb testing.TB) string {
	tb.Helper()
	return one(tb, "registry")
}

// Catalog builds the program catalog for one test and returns its path.
func Catalog(tb testing.TB) string {
	tb.Helper()
	return one(tb, "catalog")
}

func one(tb testing.TB, name string) string {
	tb.Helper()
	dir := tb.TempDir()
	if err := Build(tb.Context(), dir, "./cmd/"+name); err != nil {
		tb.Fatal(err)
	}
	return filepath.Join(dir, name)
}

// Start runs a program until the test ends or the program is stopped. Its output is an artifact of
// the test, named after the program.
func Start(tb testing.TB, name, program string, args ...string) *process.Process {
	tb.Helper()
	p, err := process.Start(tb.Context(), process.Spec{
		Name: name, Path: program, Args: args, Log: filepath.Join(tb.ArtifactDir(), name+".log"),
	})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := p.Kill(); err != nil {
			tb.Error(err)
		}
	})
	return p
}

// StartInPod starts a program as Start does. The program finds the file with the namespace of its pod, as in a pod, because
// it has its own mounts. A user other than root needs user namespaces for this.
func StartInPod(tb testing.TB, name, namespace, program string, args ...string) *process.Process {
	tb.Helper()
	const (
		files  = "/var/run/secrets/kubernetes.io/serviceaccount"
		script = `mount -t tmpfs none /var/run && mkdir -p "$2" && echo "$1" > "$2/namespace" && shift 2 && exec "$@"`
	)
	unshare := []string{"--mount", "sh", "-c", script, "sh", namespace, files, program}
	if os.Geteuid() != 0 {
		unshare = append([]string{"--map-root-user"}, unshare...)
	}
	return Start(tb, name, "unshare", append(unshare, args...)...)
}

// Serve serves a catalog with a registry until the test ends and returns its address. It does not
// wait until the registry answers.
func Serve(tb testing.TB, registry, catalog string) string {
	tb.Helper()
	address := ports.Address(tb)
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		tb.Fatal(err)
	}
	Start(tb, "registry", registry, "serve", catalog, "--host", host, "--port", port,
		"--metrics-address", "0", "--pprof-addr", "0", "--termination-log", "")
	return address
}
