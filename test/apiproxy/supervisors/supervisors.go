// Package supervisors runs supervisors as separate processes of the test binary. A process can run
// only one supervisor, and only processes can be killed. They are built with the flags of the test,
// including the race detector.
package supervisors

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/chandlery/chandlery/supervisor"
	"github.com/chandlery/chandlery/test/process"
)

// variable is the variable that makes a process of the test binary a supervisor.
const variable = "CHANDLERY_TEST_SUPERVISOR"

// Serve runs a supervisor if Start has started this process, and reports whether it has. TestMain
// calls it first and exits with the code.
func Serve() (code int, is bool) {
	if os.Getenv(variable) == "" {
		return 0, false
	}
	if err := serve(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1, true
	}
	return 0, true
}

func serve(args []string) error {
	logf.SetLogger(logr.FromSlogHandler(slog.NewTextHandler(os.Stderr, nil)))
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM) //nolint:forbidigo // it is the main function of this process
	defer stop()
	var o supervisor.Options
	flags := pflag.NewFlagSet("supervisor", pflag.ContinueOnError)
	o.AddFlags(flags)
	server := flags.String("server", "", "address of the API server instead of that of --kubeconfig")
	if err := errors.Join(flags.Parse(args), o.Validate()); err != nil {
		return err
	}
	cfg, err := clientcmd.BuildConfigFromFlags(*server, o.Kubeconfig)
	if err != nil {
		return fmt.Errorf("reading the access to the API server: %w", err)
	}
	// The proxy can only read JSON.
	cfg.QPS, cfg.ContentType = -1, "application/json"
	return supervisor.Run(ctx, cfg, o)
}

// Spec configures a supervisor.
type Spec struct {
	// Identity is its identity in the leader election.
	Identity string
	// Config is its access to the API server. Only the address is used, unless Kubeconfig is set.
	Config *rest.Config
	// Kubeconfig is the path of a kubeconfig.
	Kubeconfig string
	// Args are flags of the supervisor.
	Args []string
}

// Start runs a supervisor until the test ends or the process is stopped or killed. The supervisor
// takes over from a killed one within seconds.
func Start(tb testing.TB, s Spec) *process.Process {
	tb.Helper()
	binary, err := os.Executable()
	if err != nil {
		tb.Fatalf("finding the test binary: %v", err)
	}
	args := []string{
		"--identity", s.Identity, "--leader-election-namespace", "default",
		"--lease-duration", "3s", "--renew-deadline", "2s", "--retry-period", "200ms",
		"--metrics-address", "0", "--health-address", "0",
	}
	if s.Kubeconfig != "" {
		args = append(args, "--kubeconfig", s.Kubeconfig)
	} else {
		args = append(args, "--server", s.Config.Host)
	}
	p, err := process.Start(tb.Context(), process.Spec{
		Name: s.Identity, Path: binary, Args: append(args, s.Args...),
		Env: append(os.Environ(), variable+"=1"),
		Log: filepath.Join(tb.ArtifactDir(), s.Identity+".log"),
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

// Stop stops a supervisor and fails the test unless it exits without an error.
func Stop(tb testing.TB, p *process.Process) {
	tb.Helper()
	if err := p.Stop(30 * time.Second); err != nil {
		tb.Error(err)
	}
}
