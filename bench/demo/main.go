// Command demo measures what `make demo` costs on a machine whose build cache is empty, beside `go build` of
// kube-apiserver alone. Both start with an empty cache. The modules are in the module cache.
//
//	go run ./bench/demo
//
// It runs the demo of the last commit in a clone and in a second one, and takes about a quarter of an hour on two
// processors. It fails if the demo takes too much processor time.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/chandlery/chandlery/bench/document"
	"github.com/chandlery/chandlery/test/buildcache"
	"github.com/chandlery/chandlery/test/cli"
)

// target is the largest ratio of processor times.
const target = 1.5

// errTooExpensive means that the target is missed.
var errTooExpensive = errors.New("make demo takes too much processor time")

func main() { cli.Run("bench", start) }

// figures are the wall time and the processor time of a command and its children.
type figures struct {
	wall, processor time.Duration
}

func start(ctx context.Context, args []string) (err error) {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	if err := flags.Parse(args); err != nil {
		return err
	}
	root, err := buildcache.SourceDir("")
	if err != nil {
		return fmt.Errorf("finding the checkout: %w", err)
	}
	dir, err := os.MkdirTemp("", "chandlery-bench-")
	if err != nil {
		return fmt.Errorf("making a folder for the clone and the caches: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	clone := filepath.Join(dir, "clone")
	if err := cloneTo(ctx, root, clone); err != nil {
		return err
	}
	server, err := measure(ctx, filepath.Join(clone, "test", "controlplane", "binaries"), filepath.Join(dir, "one"),
		"go", "build", "-buildvcs=false", "-ldflags", "-s -w", "-o", filepath.Join(dir, "kube-apiserver"), "k8s.io/kubernetes/cmd/kube-apiserver")
	if err != nil {
		return err
	}
	demo, err := measure(ctx, clone, filepath.Join(dir, "two"), "make", "demo", "ARGS=--exit")
	if err != nil {
		return err
	}
	second := filepath.Join(dir, "second")
	if err := cloneTo(ctx, root, second); err != nil {
		return err
	}
	again, err := measure(ctx, second, filepath.Join(dir, "two"), "make", "demo", "ARGS=--exit")
	if err != nil {
		return err
	}
	if _, err := os.Stdout.WriteString(report(document.Machine(ctx), server, demo, again)); err != nil {
		return fmt.Errorf("printing the report: %w", err)
	}
	if ratio(demo, server) > target {
		return errTooExpensive
	}
	return nil
}

// cloneTo clones a repository to a folder.
func cloneTo(ctx context.Context, root, dir string) error {
	if out, err := exec.CommandContext(ctx, "git", "clone", "-q", root, dir).CombinedOutput(); err != nil {
		return fmt.Errorf("cloning %s: %w: %s", root, err, out)
	}
	return nil
}

// ratio returns how many times the processor time of b a takes.
func ratio(a, b figures) float64 { return a.processor.Seconds() / b.processor.Seconds() }

// measure runs a command in dir with its caches below cache, and shows its output.
func measure(ctx context.Context, dir, cache, name string, args ...string) (figures, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "PWD="+dir, "GOWORK=off", "CGO_ENABLED=0", "GOFLAGS=-trimpath",
		"GOCACHE="+filepath.Join(cache, "go"), buildcache.RootVariable+"="+filepath.Join(cache, "programs"))
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	began := time.Now()
	if err := cmd.Run(); err != nil {
		return figures{}, fmt.Errorf("running %s %s in %s: %w", name, strings.Join(args, " "), dir, err)
	}
	return figures{wall: time.Since(began), processor: cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()}, nil
}

func report(machine string, server, demo, again figures) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s.\n\n| With an empty build cache | wall time | processor time |\n|---|---|---|\n", machine)
	for _, row := range []struct {
		name string
		f    figures
	}{{"`go build` of kube-apiserver alone", server}, {"`make demo`", demo}, {"`make demo` in a second clone", again}} {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", row.name, row.f.wall.Round(time.Second), row.f.processor.Round(time.Second))
	}
	fmt.Fprintf(&b, "\n`make demo` takes %.2f times the processor time of kube-apiserver alone (target: at most %.1f).\n",
		ratio(demo, server), target)
	return b.String()
}
