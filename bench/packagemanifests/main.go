// Command packagemanifests measures what PackageManifests of a real catalog cost: the supervisor that serves nothing else
// (--packagemanifests=only) beside OLM's package server, one after the other, through the same kube-apiserver. Then it
// measures the memory of a whole supervisor with the API and without it. It fails if a budget is missed.
//
//	go run ./bench/packagemanifests [--calls 20] [--rest 20s]
//
// It needs root, because OLM's package server expects the files of a pod, which it gets in a mount namespace.
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
	"github.com/chandlery/chandlery/test/oracle/olmpeer"
	"github.com/chandlery/chandlery/test/programs"
)

func main() { cli.Run("bench", start) }

// options are the command-line flags.
type options struct {
	// calls is the number of calls of each kind.
	calls int
	// rest is how long a server is idle before its memory is read.
	rest time.Duration
}

func parse(args []string, output io.Writer) (options, error) {
	o := options{}
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(output)
	flags.IntVar(&o.calls, "calls", 20, "number of tables and of full lists")
	flags.DurationVar(&o.rest, "rest", 20*time.Second, "idle time before the memory is read")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if o.calls < 1 || o.rest <= 0 {
		return o, fmt.Errorf("--calls %d, --rest %s: each has to be above zero", o.calls, o.rest)
	}
	return o, nil
}

// start builds the programs, measures both servers and prints the report.
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
	peer, err := olmpeer.BuildPackageServer(ctx, os.Stderr)
	if err != nil {
		return errors.Join(err, os.RemoveAll(dir))
	}
	figures, rest, err := measure(ctx, o, dir, peer)
	if err != nil {
		return fmt.Errorf("%w (logs are in %s)", err, dir)
	}
	if _, err := os.Stdout.WriteString(markdown(o, figures, rest)); err != nil {
		return fmt.Errorf("printing the report: %w", err)
	}
	return errors.Join(os.RemoveAll(dir), checkBudgets(figures[0], figures[1], rest))
}
