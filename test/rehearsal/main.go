// Command rehearsal migrates a cluster from a real OLM to the supervisors and back, on real nodes, and compares
// the cluster with its state before:
//
//	go run ./test/rehearsal [--rounds 1]
//
// OLM has sixteen operators of different shapes. At each switch, an InstallPlan is under way. The program fails if
// the cluster differs in anything that docs/migration.md does not name, if a webhook, a conversion or an aggregated API
// does not answer, or if the cluster has no manager for too long. It needs what test/nodes needs: Linux, root, and some of
// Debian's packages.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/chandlery/chandlery/test/cli"
	"github.com/chandlery/chandlery/test/nodes"
)

func main() {
	cli.Run("rehearsal", func(ctx context.Context, args []string) error { return start(ctx, args, os.Stdout) })
}

func start(ctx context.Context, args []string, out io.Writer) (err error) {
	flags := flag.NewFlagSet("rehearsal", flag.ContinueOnError)
	rounds := flags.Int("rounds", 1, "number of migrations there and back")
	logs := flags.String("logs", "", "folder into which the logs of the nodes are copied if the rehearsal fails")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if err := document(); err != nil {
		return err
	}
	bed, err := nodes.Start(ctx, nodes.Options{})
	if err != nil {
		return err
	}
	defer func() { //nolint:contextcheck // the bed is stopped when ctx has ended, too
		if err != nil && *logs != "" {
			err = errors.Join(err, bed.SaveLogs(*logs))
		}
		err = errors.Join(err, bed.Stop())
	}()
	dir, err := os.MkdirTemp("", "chandlery-rehearsal-")
	if err != nil {
		return fmt.Errorf("making a folder for programs: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	s, err := newScene(ctx, bed, dir, *rounds, os.Stderr)
	if err != nil {
		return err
	}
	all, err := s.rehearse(ctx, *rounds)
	return errors.Join(err, report(out, all))
}
