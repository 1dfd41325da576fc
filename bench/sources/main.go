// Command sources measures the cost of many CatalogSources for a supervisor: memory for each, and
// writes to the API server while idle.
//
//	go run ./bench/sources [--sources 200] [--span 1m]
//
// The control plane is real; kwok simulates its nodes and pods. The addresses of the pods lead to
// one registry, so every replica answers and every catalog is read. Everything runs in a network
// namespace of its own, which requires root and Linux.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/chandlery/chandlery/test/cli"
	"github.com/chandlery/chandlery/test/controlplane"
	"github.com/chandlery/chandlery/test/programs"
)

func main() { cli.Run("bench", start) }

// options are the command-line flags.
type options struct {
	// sources is the number of sources added to the first ones.
	sources int
	// first is the number of sources at the first memory measurement.
	first int
	// span is the idle time to measure. settle is how long a process gets to become idle.
	span, settle time.Duration
	// bin is the folder of the programs; set for the process inside the namespace.
	bin string
}

func parse(args []string, output io.Writer) (options, error) {
	o := options{}
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(output)
	flags.IntVar(&o.sources, "sources", 200, "number of CatalogSources to add")
	flags.IntVar(&o.first, "first", 20, "number of CatalogSources there are before")
	flags.DurationVar(&o.span, "span", time.Minute, "time in which nothing happens")
	flags.DurationVar(&o.settle, "settle", 10*time.Second, "time to rest before memory is looked at")
	flags.StringVar(&o.bin, "bin", "", "folder with the programs; empty to build them and to enter a network namespace")
	return o, flags.Parse(args)
}

func start(ctx context.Context, args []string) error {
	o, err := parse(args, os.Stderr)
	if err != nil {
		return err
	}
	if o.bin != "" {
		return inside(ctx, o)
	}
	dir, err := os.MkdirTemp("", "chandlery-bench-")
	if err != nil {
		return fmt.Errorf("making a folder for the programs: %w", err)
	}
	err = outside(ctx, dir, args)
	return errors.Join(err, os.RemoveAll(dir))
}

// outside builds the programs, which requires the network. It then continues in a process with its own network.
func outside(ctx context.Context, dir string, args []string) error {
	if err := programs.Build(ctx, dir, "./cmd/registry", "./cmd/supervisor"); err != nil {
		return err
	}
	if _, err := controlplane.Build(ctx, os.Stderr); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("finding this program: %w", err)
	}
	cmd := exec.CommandContext(ctx, self, append(args, "--bin", dir)...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("measuring in a network namespace (which needs root): %w", err)
	}
	return nil
}
