package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/google/go-containerregistry/pkg/registry"
)

// command is a command to measure.
type command struct {
	name    string
	program string
	args    []string
	// push is set for a command that pushes. Its last argument is the reference of the image.
	push bool
}

// pruned is the package to which the catalog is pruned, one of medium size.
const pruned = "prometheus"

// commands returns the commands of the peer and of ours, the peer first.
func commands(opm, catalog, dir string) []command {
	return []command{
		{name: "`opm render`", program: opm, args: []string{"render", dir}},
		{name: "`catalog render`", program: catalog, args: []string{"render", dir}},
		{name: "`catalog render -o yaml`", program: catalog, args: []string{"render", dir, "-o", "yaml"}},
		{name: "`catalog prune --package " + pruned + "`", program: catalog, args: []string{"prune", dir, "--package", pruned}},
		{name: "`catalog push`, with index", program: catalog, args: []string{"push", dir, "--use-http"}, push: true},
	}
}

// figure is the fastest round of a command.
type figure struct {
	name       string
	wall, work time.Duration
	// memory is the largest resident set, in bytes.
	memory int64
}

// measure runs all commands round by round, so other load on the machine affects all of them.
func measure(ctx context.Context, all []command, rounds int) ([]figure, error) {
	images := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer images.Close()
	figures := make([]figure, len(all))
	for round := range rounds {
		for i, c := range all {
			args := c.args
			if c.push {
				args = append(slices.Clip(args), fmt.Sprintf("%s/catalog:r%d", images.Listener.Addr(), round))
			}
			found, err := run(ctx, c.program, args)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", strings.Trim(c.name, "`"), err)
			}
			found.name = c.name
			if round == 0 || found.wall < figures[i].wall {
				figures[i] = found
			}
		}
	}
	return figures, nil
}

var errNoUsage = errors.New("the system does not tell what a process has used")

// run runs a program and discards its output.
func run(ctx context.Context, program string, args []string) (figure, error) {
	cmd := exec.CommandContext(ctx, program, args...)
	var complaints bytes.Buffer
	cmd.Stderr = &complaints
	nowhere, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		return figure{}, fmt.Errorf("opening %s: %w", os.DevNull, err)
	}
	defer nowhere.Close() //nolint:errcheck // nothing is kept
	cmd.Stdout = nowhere
	began := time.Now()
	if err := cmd.Run(); err != nil {
		return figure{}, fmt.Errorf("%w: %s", err, complaints.String())
	}
	wall := time.Since(began)
	usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	if !ok {
		return figure{}, errNoUsage
	}
	return figure{wall: wall, work: cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), memory: usage.Maxrss << 10}, nil
}

// report returns the figures as Markdown: the figures of each command's fastest round, and their
// ratio to the peer's.
func report(figures []figure) string {
	var text strings.Builder
	fmt.Fprintf(&text, "On %d processors, the fastest of several rounds.\n\n", runtime.NumCPU())
	fmt.Fprintf(&text, "| Command | Time | of opm's | Work | of opm's | Memory |\n|---|---|---|---|---|---|\n")
	peer := figures[0]
	for _, f := range figures {
		fmt.Fprintf(&text, "| %s | %.2f s | %.0f %% | %.2f s | %.0f %% | %d MiB |\n", f.name,
			f.wall.Seconds(), 100*f.wall.Seconds()/peer.wall.Seconds(),
			f.work.Seconds(), 100*f.work.Seconds()/peer.work.Seconds(), f.memory>>20)
	}
	return text.String()
}
