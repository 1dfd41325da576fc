// Command copies measures the cost of copied ClusterServiceVersions for the supervisor: memory with
// copies on and off, the time to create and delete them, and the writes while idle.
//
//	go run ./bench/copies [--namespaces 300] [--operators 15] [--size 100] [--rest 1m]
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
	"time"

	"github.com/chandlery/chandlery/test/cli"
	"github.com/chandlery/chandlery/test/programs"
)

func main() { cli.Run("bench", start) }

// options are the command-line flags.
type options struct {
	// namespaces is the number of namespaces besides those of Kubernetes and of the operators.
	namespaces int
	// operators is the number of operators that serve all namespaces.
	operators int
	// size is the size of each ClusterServiceVersion, in KiB.
	size int
	// rest is how long the idle supervisor is observed.
	rest time.Duration
}

func parse(args []string, output io.Writer) (options, error) {
	o := options{}
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(output)
	flags.IntVar(&o.namespaces, "namespaces", 300, "namespaces that get copies")
	flags.IntVar(&o.operators, "operators", 15, "operators for all namespaces")
	flags.IntVar(&o.size, "size", 100, "size of each version in KiB")
	flags.DurationVar(&o.rest, "rest", time.Minute, "for how long to watch that nothing is written")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if o.namespaces < 1 || o.operators < 1 || o.size < 1 || o.rest <= 0 {
		return o, fmt.Errorf("--namespaces %d, --operators %d, --size %d, --rest %s: each has to be above zero", o.namespaces, o.operators, o.size, o.rest)
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
