// Command footprint compares the programs of this checkout with those of an earlier commit: the sizes of the binaries, the
// memory at rest, and the time from a Subscription to a version that has succeeded.
//
//	go run ./bench/footprint --base COMMIT [--rounds 5]
//
// In each round, the programs of both commits run one after the other, each with a control plane of its own. kwok
// simulates the nodes. Needed: Linux, and the git history. The exit status is 1 if a figure has grown beyond its limit.
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

	"github.com/chandlery/chandlery/test/buildcache"
	"github.com/chandlery/chandlery/test/cli"
	"github.com/chandlery/chandlery/test/controlplane"
)

func main() { cli.Run("bench", start) }

var (
	errNoBase = errors.New("--base is empty; name the commit to compare with")
	errMissed = errors.New("these figures have grown beyond their limits")
)

func start(ctx context.Context, args []string) (err error) {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	base := flags.String("base", "", "commit to compare with")
	rounds := flags.Int("rounds", 5, "number of rounds; the median counts")
	settle := flags.Duration("settle", 30*time.Second, "time at rest before memory is measured")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *base == "" {
		return errNoBase
	}
	dir, err := os.MkdirTemp("", "chandlery-bench-")
	if err != nil {
		return fmt.Errorf("making a folder for programs: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	root, err := buildcache.SourceDir(".")
	if err != nil {
		return fmt.Errorf("finding the sources: %w", err)
	}
	earlier := filepath.Join(dir, "sources")
	if err := export(ctx, root, *base, earlier); err != nil {
		return err
	}
	bins := [2]string{filepath.Join(dir, "base"), filepath.Join(dir, "now")}
	for i, sources := range []string{earlier, root} {
		if err := build(ctx, sources, bins[i]); err != nil {
			return err
		}
	}
	if _, err := controlplane.Build(ctx, os.Stderr); err != nil {
		return err
	}
	measured, err := measureAll(ctx, bins, filepath.Join(root, "examples", "catalog"), max(1, *rounds), *settle)
	if err != nil {
		return err
	}
	text, missed := report(*base, measured)
	if _, err := os.Stdout.WriteString(text); err != nil {
		return fmt.Errorf("printing the report: %w", err)
	}
	if len(missed) > 0 {
		return fmt.Errorf("%w: %s", errMissed, strings.Join(missed, ", "))
	}
	return nil
}

// export writes the files of a commit to a folder.
func export(ctx context.Context, root, commit, to string) error {
	if err := os.Mkdir(to, 0o755); err != nil {
		return fmt.Errorf("making a folder for the sources: %w", err)
	}
	archive := to + ".tar"
	for _, command := range [][]string{
		{"git", "-C", root, "archive", "--output", archive, commit},
		{"tar", "-x", "-f", archive, "-C", to},
	} {
		if out, err := exec.CommandContext(ctx, command[0], command[1:]...).CombinedOutput(); err != nil {
			return fmt.Errorf("reading the sources of commit %s: %w\n%s", commit, err, out)
		}
	}
	return nil
}

// build builds the programs as a release does.
func build(ctx context.Context, sources, to string) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", to+"/", "./cmd/supervisor", "./cmd/registry")
	cmd.Dir = sources
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("building %s: %w\n%s", sources, err, out)
	}
	return nil
}
