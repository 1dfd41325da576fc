// Command olm installs one operator in many namespaces with Operator Lifecycle Manager, the peer of
// the supervisor, and prints what each installation costs. bench/scale does the same with the supervisor.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"

	"github.com/chandlery/chandlery/test/oracle/olmpeer"
	"github.com/chandlery/chandlery/test/programs"
	"github.com/chandlery/chandlery/test/scale"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("olm", flag.ContinueOnError)
	text := flags.String("namespaces", "10,50", "how many namespaces have the operator after each step")
	if err := flags.Parse(args); err != nil {
		return err
	}
	sizes, err := parseSizes(*text)
	if err != nil {
		return fmt.Errorf("--namespaces=%s: %w", *text, err)
	}
	version, err := olmpeer.Version()
	if err != nil {
		return err
	}
	fmt.Println("OLM", version)
	dir, err := os.MkdirTemp("", "chandlery-bench-")
	if err != nil {
		return fmt.Errorf("making a folder for programs and logs: %w", err)
	}
	if err := measure(ctx, dir, sizes); err != nil {
		return fmt.Errorf("%w (logs are in %s)", err, dir)
	}
	return os.RemoveAll(dir)
}

// parseSizes reads numbers of namespaces, each larger than the one before.
func parseSizes(text string) ([]int, error) {
	var sizes []int
	last := 0
	for one := range strings.SplitSeq(text, ",") {
		size, err := strconv.Atoi(one)
		if err != nil {
			return nil, fmt.Errorf("want numbers with commas between them: %w", err)
		}
		if size <= last {
			return nil, fmt.Errorf("%d is not larger than %d: want rising numbers", size, last)
		}
		sizes, last = append(sizes, size), size
	}
	return sizes, nil
}

func measure(ctx context.Context, dir string, sizes []int) (err error) {
	if err := programs.Build(ctx, dir, "./cmd/registry", "./cmd/supervisor"); err != nil {
		return err
	}
	m, err := scale.StartOLM(ctx, scale.Options{Root: ".", Dir: dir})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.Stop()) }()
	before := 0
	for _, size := range sizes {
		names := scale.Names(before, size)
		if err := m.Prepare(ctx, names); err != nil {
			return err
		}
		b, err := m.Install(ctx, before, names)
		if err != nil {
			return err
		}
		if err := show(os.Stdout, b); err != nil {
			return err
		}
		before = size
	}
	return nil
}
