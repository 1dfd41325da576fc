// Command failover measures what clients of a catalog see when nodes and leaders are lost, on real
// nodes with the default timings of Kubernetes. It compares this with a plain Deployment of the
// same image on the same nodes.
//
//	go run ./bench/failover [--rounds 3]
//
// It needs what test/nodes needs: Linux, root, and some of Debian's packages. It takes about half
// an hour, because a plain Deployment has all replicas again only after five minutes.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/chandlery/chandlery/test/cli"
	"github.com/chandlery/chandlery/test/failover"
	"github.com/chandlery/chandlery/test/nodes"
)

func main() {
	cli.Run("bench", func(ctx context.Context, args []string) error { return start(ctx, args, os.Stdout) })
}

func start(ctx context.Context, args []string, out io.Writer) (err error) {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	rounds := flags.Int("rounds", 3, "number of times that each thing is taken away")
	peers := flags.Int("plain", 1, "number of times that a plain Deployment loses a node")
	if err := flags.Parse(args); err != nil {
		return err
	}
	bed, err := nodes.Start(ctx, nodes.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, bed.Stop()) }() //nolint:contextcheck // the bed is stopped when ctx has ended, too
	dir, err := os.MkdirTemp("", "chandlery-bench-")
	if err != nil {
		return fmt.Errorf("making a folder for programs: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	scene, err := failover.Install(ctx, bed, dir, os.Stderr)
	if err != nil {
		return err
	}
	b := &bench{scene: scene, out: out}
	return b.run(ctx, *rounds, *peers)
}
