// Command versions measures two properties of ClusterServiceVersions: the time from an available
// Deployment to the phase Succeeded, and the delay of other clients during a removal. The removal
// deletes a version with all its custom resources.
//
//	go run ./bench/versions [--installs 20] [--objects 1000]
//
// The control plane is real; kwok simulates its nodes and pods. It needs no root.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/chandlery/chandlery/test/cli"
	"github.com/chandlery/chandlery/test/programs"
)

func main() { cli.Run("bench", start) }

// options are the command-line flags.
type options struct {
	// installs is the number of versions installed one after the other.
	installs int
	// objects is the number of custom resources of the last version when it is deleted.
	objects int
}

func parse(args []string, output io.Writer) (options, error) {
	o := options{}
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(output)
	flags.IntVar(&o.installs, "installs", 20, "versions to install one after the other")
	flags.IntVar(&o.objects, "objects", 1000, "custom resources of the version that is removed")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if o.installs < 1 || o.objects < 1 {
		return o, fmt.Errorf("--installs %d, --objects %d: each has to be above zero", o.installs, o.objects)
	}
	return o, nil
}

// start builds the supervisor, measures and prints the report.
func start(ctx context.Context, args []string) error {
	o, err := parse(args, os.Stderr)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "chandlery-bench-")
	if err != nil {
		return fmt.Errorf("making a folder for the program and logs: %w", err)
	}
	if err := programs.Build(ctx, dir, "./cmd/supervisor"); err != nil {
		return errors.Join(err, os.RemoveAll(dir))
	}
	f, err := measure(ctx, o, dir)
	if err != nil {
		return fmt.Errorf("%w (logs are in %s)", err, dir)
	}
	if _, err := os.Stdout.WriteString(f.markdown()); err != nil {
		return fmt.Errorf("printing the report: %w", err)
	}
	return os.RemoveAll(dir)
}
