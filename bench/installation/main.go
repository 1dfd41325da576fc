// Command installation measures the time from an operator's Subscription to the end of its
// InstallPlan, and the writes to the API server.
//
//	go run ./bench/installation [--installs 20] [--namespaces 50] [--write docs/measurements.md]
//
// The control plane is real; kwok simulates its nodes and pods. Our registry serves the catalog,
// and an image registry in this process serves the bundle images. It needs no root.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/chandlery/chandlery/bench/document"
	"github.com/chandlery/chandlery/test/cli"
	"github.com/chandlery/chandlery/test/programs"
)

func main() { cli.Run("bench", start) }

// options are the command-line flags.
type options struct {
	// installs is the number of operators installed one after the other, for each kind of bundle.
	installs int
	// namespaces is the number of namespaces that get an OperatorGroup and a Subscription at once.
	namespaces int
	// write is the document for the report.
	write string
}

func parse(args []string, output io.Writer) (options, error) {
	o := options{}
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(output)
	flags.IntVar(&o.installs, "installs", 20, "operators to install one after the other, of each kind of bundle")
	flags.IntVar(&o.namespaces, "namespaces", 50, "namespaces that get an OperatorGroup and a Subscription at once")
	flags.StringVar(&o.write, "write", "", "document to put the report into, between its markers")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if o.installs < 1 || o.namespaces < 1 {
		return o, fmt.Errorf("--installs %d, --namespaces %d: at least one of each is needed", o.installs, o.namespaces)
	}
	return o, nil
}

// start builds the programs, measures, and prints and writes the report.
func start(ctx context.Context, args []string) error {
	o, err := parse(args, os.Stderr)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "chandlery-bench-")
	if err != nil {
		return fmt.Errorf("making a folder for programs and logs: %w", err)
	}
	if err := programs.Build(ctx, dir, "./cmd/registry", "./cmd/supervisor"); err != nil {
		return errors.Join(err, os.RemoveAll(dir))
	}
	origin := document.NewOrigin(ctx, "./cmd/supervisor", "./bench/installation")
	figures, err := measure(ctx, o, dir)
	if err != nil {
		return fmt.Errorf("%w (logs are in %s)", err, dir)
	}
	text := figures.markdown()
	if _, err := os.Stdout.WriteString(text); err != nil {
		return fmt.Errorf("printing the report: %w", err)
	}
	if o.write != "" {
		if err := document.Insert(o.write, "bench-installation", text, origin); err != nil {
			return err
		}
	}
	return os.RemoveAll(dir)
}
