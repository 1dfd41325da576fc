// Command cluster runs one control plane for interactive use:
//
//	go run ./test/controlplane/cluster up|down|status|build
//
// up builds what is missing, starts a control plane that remains running, waits until its nodes are
// Ready and prints how to use it. If one runs, up only prints. down stops it and removes its data.
// status reports whether one runs. build only builds.
//
// Its state is below $CHANDLERY_CACHE (by default the user's cache folder).
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/chandlery/chandlery/test/controlplane"
	"github.com/chandlery/chandlery/test/daemon"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])

	stop()

	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	commands := map[string]func(context.Context, cluster) error{
		"build":       build,
		"up":          func(ctx context.Context, c cluster) error { return c.up(ctx, os.Stdout) },
		"down":        func(ctx context.Context, c cluster) error { return c.Down(ctx, os.Stdout) },
		"status":      func(_ context.Context, c cluster) error { return c.status(os.Stdout) },
		daemon.Action: func(ctx context.Context, c cluster) error { return c.keep(ctx) },
	}

	if len(args) != 1 || commands[args[0]] == nil {
		return fmt.Errorf("usage: cluster up|down|status|build (got %q)", args)
	}

	c, err := newCluster()
	if err != nil {
		return err
	}

	return commands[args[0]](ctx, c)
}

func build(ctx context.Context, _ cluster) error {
	dir, err := controlplane.Build(ctx, os.Stderr)
	if err != nil {
		return err
	}

	fmt.Fprintln(os.Stdout, dir)

	return nil
}
