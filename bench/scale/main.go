// Command scale measures the cost of one operator in many namespaces: time, requests in the audit
// log of the API server, reconciliations, processor time and memory.
//
//	go run ./bench/scale [--namespaces 10,50,200,1000] [--peer 50] [--profile DIR] [--write docs/measurements-scale.md]
//
// Each number of namespaces has its own control planes, where one namespace already has the
// operator as a warm-up. The supervisor is compared with the floor: a plain client that creates the
// objects of each installation, with the same number of concurrent requests, and waits for the
// Deployments. Operator Lifecycle Manager, which is built on first use, installs the same in up
// to --peer namespaces. The control planes are real; kwok simulates their nodes and pods. It needs no root.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/chandlery/chandlery/bench/document"
	"github.com/chandlery/chandlery/test/cli"
	"github.com/chandlery/chandlery/test/programs"
)

func main() { cli.Run("bench", start) }

// options are the command-line flags.
type options struct {
	// sizes are the numbers of namespaces that get the operator at once.
	sizes []int
	// profile is a folder for profiles of the supervisor; empty for none.
	profile string
	// peer is the largest number of namespaces at which Operator Lifecycle Manager is measured.
	peer int
	// rest is how long requests are counted while nothing changes, with the operator in the largest
	// number of namespaces; 0 skips this and the update.
	rest time.Duration
	// update is set if all namespaces get a replacing version after the rest.
	update bool
	// real runs pods on real nodes.
	real bool
	// without are controllers that kube-controller-manager does not run.
	without []string
	// write is the document for the report.
	write string
}

func parse(args []string, output io.Writer) (options, error) {
	var o options
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(output)
	sizes := flags.String("namespaces", "10,50,200,1000", "numbers of namespaces that get the operator at once")
	flags.StringVar(&o.profile, "profile", "", "folder for profiles of the supervisor: processor time and allocations")
	flags.IntVar(&o.peer, "peer", 50, "largest number of namespaces with which Operator Lifecycle Manager is measured too; 0 disables it; it needs about 5 s for each namespace")
	flags.DurationVar(&o.rest, "rest", time.Minute, "for how long to count requests at rest with the most namespaces, before all get an update; 0 leaves both out")
	flags.BoolVar(&o.update, "update", true, "after the rest, add a replacing version to the catalog, and wait until all namespaces have it")
	flags.BoolVar(&o.real, "real-nodes", false, "run pods on three real nodes, as root, in the place of kwok's")
	without := flags.String("without-controllers", "", "controllers of Kubernetes to leave out, for example clusterrole-aggregation-controller, to measure what they cost")
	flags.StringVar(&o.write, "write", "", "document to put the report into, between its markers")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if *without != "" {
		o.without = strings.Split(*without, ",")
	}
	for text := range strings.SplitSeq(*sizes, ",") {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			return o, fmt.Errorf("--namespaces %s: %q is not a number from 1 on", *sizes, text)
		}
		o.sizes = append(o.sizes, n)
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
	machine, origin := document.Machine(ctx), document.NewOrigin(ctx, "./cmd/supervisor", "./bench/scale")
	var after afterwards
	all, err := sides(dir, o, &after)
	if err != nil {
		return errors.Join(err, os.RemoveAll(dir))
	}
	rounds, err := measure(ctx, o.sizes, all)
	if err != nil {
		return fmt.Errorf("%w (logs are in %s)", err, dir)
	}
	text := report(machine, rounds, after)
	fmt.Print(text)
	if o.write != "" {
		if err := document.Insert(o.write, "bench-scale", text, origin); err != nil {
			return err
		}
	}
	return os.RemoveAll(dir)
}
