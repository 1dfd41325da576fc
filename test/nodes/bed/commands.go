package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/chandlery/chandlery/test/buildcache"
	"github.com/chandlery/chandlery/test/daemon"
	"github.com/chandlery/chandlery/test/nodes"
)

// upLimit bounds the start of the bed, including the wait for another bed.
const upLimit = 10 * time.Minute

// usage is the message for a wrong command line.
const usage = "usage: bed up|down|status|build, bed lost N, bed back N, bed push PATH REPOSITORY:TAG"

// bed is the user's only bed, running or not.
type bed struct {
	daemon.Daemon
}

// state is what the daemon announces when the nodes are Ready.
type state struct {
	PID        int       `json:"pid"`
	Kubeconfig string    `json:"kubeconfig"`
	Kubectl    string    `json:"kubectl"`
	Registry   string    `json:"registry"`
	Logs       string    `json:"logs"`
	Nodes      []string  `json:"nodes"`
	Since      time.Time `json:"since"`
}

func newBed() (bed, error) {
	root, err := buildcache.Root()
	if err != nil {
		return bed{}, err
	}

	return bed{daemon.Daemon{Dir: filepath.Join(root, "bed"), Name: "bed", Start: "make nodes-up", Limit: upLimit}}, nil
}

// command is the function of one word of the command line, with its number of arguments.
type command struct {
	arguments int
	run       func(ctx context.Context, b bed, arguments []string) error
}

func commands() map[string]command {
	return map[string]command{
		"up":          {0, func(ctx context.Context, b bed, _ []string) error { return b.up(ctx, os.Stdout) }},
		"down":        {0, func(ctx context.Context, b bed, _ []string) error { return b.Down(ctx, os.Stdout) }},
		"status":      {0, func(_ context.Context, b bed, _ []string) error { return b.status(os.Stdout) }},
		"build":       {0, func(ctx context.Context, _ bed, _ []string) error { return nodes.Build(ctx, os.Stderr) }},
		"lost":        {1, func(ctx context.Context, b bed, a []string) error { return b.ask(ctx, os.Stdout, "lost", a[0]) }},
		"back":        {1, func(ctx context.Context, b bed, a []string) error { return b.ask(ctx, os.Stdout, "back", a[0]) }},
		"push":        {2, func(ctx context.Context, b bed, a []string) error { return b.push(ctx, os.Stdout, a[0], a[1]) }},
		daemon.Action: {0, func(ctx context.Context, b bed, _ []string) error { return b.keep(ctx) }},
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return errors.New(usage)
	}

	c, ok := commands()[args[0]]
	if !ok || len(args) != c.arguments+1 {
		return fmt.Errorf("%s (got %q)", usage, args)
	}

	b, err := newBed()
	if err != nil {
		return err
	}

	return c.run(ctx, b, args[1:])
}

// up starts a bed unless one runs, and prints how to use it.
func (b bed) up(ctx context.Context, out io.Writer) error {
	var s state

	err := b.Up(ctx, &s, func() error {
		err := nodes.Check(ctx)
		if err != nil {
			return err
		}

		return nodes.Build(ctx, os.Stderr)
	})
	if err != nil {
		return err
	}

	return s.print(out)
}

// keep runs the bed until ctx ends. up leaves it running.
func (b bed) keep(ctx context.Context) error {
	return b.Keep(ctx, func(ctx context.Context) error {
		running, err := nodes.Start(ctx, nodes.Options{Dir: b.DataDir()})
		if err != nil {
			return err
		}

		return errors.Join(b.serve(ctx, running), running.Stop()) //nolint:contextcheck // ctx has ended by then.
	})
}

func (b bed) serve(ctx context.Context, running *nodes.Bed) error {
	control, err := listen(ctx, b.socket(), running)
	if err != nil {
		return err
	}

	err = b.Announce(state{
		PID: os.Getpid(), Kubeconfig: running.Kubeconfig(), Kubectl: running.Kubectl(),
		Registry: running.Images.Address(), Logs: running.LogDir(), Nodes: running.Nodes(), Since: time.Now(),
	})
	if err == nil {
		err = daemon.Watch(ctx, running.Err)
	}

	return errors.Join(err, control.Close())
}

// status prints how to use the running bed.
func (b bed) status(out io.Writer) error {
	var s state

	err := b.Ready(&s)
	if err != nil {
		return err
	}

	return s.print(out)
}

// number parses the number of a node.
func number(text string) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0, fmt.Errorf("node %q: want a number, 1 for node-1 (`make node-lost N=1`)", text)
	}

	return n, nil
}

// print prints how to use the bed.
func (s state) print(out io.Writer) error {
	_, err := fmt.Fprintf(out, `nodes are up since %[1]s: %[2]s
kubeconfig: %[3]s
kubectl:    %[4]s
registry:   %[5]s (http; images pushed as NAME:TAG are what pods get for NAME:TAG)
logs:       %[6]s

make node-lost N=2                                  cuts the power of node-2
make node-back N=2                                  returns it
go run ./test/nodes/bed push LAYOUT NAME:TAG        puts an image into the registry
nsenter --net=/run/netns/chandlery-client COMMAND   runs a command where ClusterIPs work
make nodes-down                                     stops everything

export KUBECONFIG=%[3]s
`, s.Since.Format(time.DateTime), strings.Join(s.Nodes, ", "), s.Kubeconfig, s.Kubectl, s.Registry, s.Logs)
	if err != nil {
		return fmt.Errorf("print the state of the bed: %w", err)
	}

	return nil
}
