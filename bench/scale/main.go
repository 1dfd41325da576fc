// Command scale measures what one operator in many namespaces costs: time, requests by the audit log
// of the API server, passes of controllers, processor time and memory.
//
//	go run ./bench/scale [--namespaces 10,50,200] [--peer] [--profile DIR] [--write docs/measurements-scale.md]
//
// Each number of namespaces has control planes of its own, where one namespace has the operator
// before, so that all is warm. Beside the supervisor stands the floor: a plain client that creates the
// objects of each installation, with as many requests at once, and waits for the Deployments. With
// --peer Operator Lifecycle Manager, which is built on first use, installs the same. The control
// planes are real, their nodes and pods are kwok's. No root is needed.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/chandlery/chandlery/bench/document"
	"github.com/chandlery/chandlery/test/programs"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := start(ctx, os.Args[1:])
	stop()
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// options are what the flags say.
type options struct {
	// sizes are the numbers of namespaces that get the operator at once.
	sizes []int
	// profile is a folder for profiles of the supervisor; empty for none.
	profile string
	// peer is the largest number of namespaces at which Operator Lifecycle Manager is measured too.
	peer int
	// rest is for how long requests are counted while nothing changes, with the operator in the
	// largest number of namespaces; 0 for not at all.
	rest time.Duration
	// real has pods run on real nodes.
	real bool
	// write is a document to put the report into.
	write string
}

func parse(args []string, output io.Writer) (options, error) {
	var o options
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(output)
	sizes := flags.String("namespaces", "10,50,200,1000", "numbers of namespaces that get the operator at once")
	flags.StringVar(&o.profile, "profile", "", "folder for profiles of the supervisor: processor time and allocations")
	flags.IntVar(&o.peer, "peer", 0, "up to how many namespaces Operator Lifecycle Manager is measured beside the supervisor, 0 for not at all: it takes some 5 s for each")
	flags.DurationVar(&o.rest, "rest", time.Minute, "for how long to count requests at rest with the most namespaces, before all get an update; 0 leaves both out")
	flags.BoolVar(&o.real, "real-nodes", false, "run pods on three real nodes, as root, in the place of kwok's")
	flags.StringVar(&o.write, "write", "", "document to put the report into, between its markers")
	if err := flags.Parse(args); err != nil {
		return o, err
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
