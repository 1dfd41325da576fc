// Command fuzz runs fuzz targets, one after the other, each for a time. It reads "PACKAGE TARGET"
// lines from its input, as test/packages prints them:
//
//	go run ./test/packages fuzz | go run ./test/fuzz -fuzztime 10s
//
// It differs from `go test -fuzz` in two ways. The test program of a package is built once for all
// its targets, while the targets of the previous package run. Only the packages of the module are
// built with coverage. The time ends with an interrupt: `go test -fuzztime` fails now and then when
// the time ends while an input is executed (go.dev/issue/75804, fixed in Go 1.27).
package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// target is one fuzz target.
type target struct{ pkg, name string }

// program is the test program of a package.
type program struct {
	pkg     string
	targets []string
	// path is the program, dir is the folder of the sources, and cache is the folder of the
	// interesting inputs of earlier runs.
	path, dir, cache string
	// err is the error of the build.
	err error
}

// options are the command-line flags.
type options struct {
	time         time.Duration
	minimizeTime string
	// module is the folder in which packages are built.
	module string
}

func main() {
	o := options{}
	flag.DurationVar(&o.time, "fuzztime", 10*time.Second, "how long each target runs")
	flag.StringVar(&o.minimizeTime, "fuzzminimizetime", "1x", "how long, or how often, a failing input is made smaller")
	flag.Parse()
	if err := run(context.Background(), o, os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "fuzz:", err)
		os.Exit(1)
	}
}

// run runs all targets of the input. The error names every target that failed.
func run(ctx context.Context, o options, in io.Reader, out io.Writer) error {
	targets, err := parse(in)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "fuzz-")
	if err != nil {
		return fmt.Errorf("making a folder for test programs: %w", err)
	}
	defer os.RemoveAll(dir) //nolint:errcheck // a temporary folder
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var failed []error
	for p := range buildAll(ctx, o.module, dir, group(targets)) {
		if p.err != nil {
			failed = append(failed, p.err)
			continue
		}
		for _, name := range p.targets {
			fmt.Fprintf(out, "fuzzing %s in %s\n", name, p.pkg)
			if err := fuzz(ctx, o, p, name, out); err != nil {
				failed = append(failed, err)
			}
		}
	}
	return errors.Join(failed...)
}

// parse returns the targets of the input.
func parse(in io.Reader) ([]target, error) {
	var targets []target
	scanner := bufio.NewScanner(in)
	for scanner.Scan() {
		fields := strings.Fields(scanner.Text())
		if len(fields) != 2 {
			return nil, fmt.Errorf("%q: want a package and a target", scanner.Text())
		}
		targets = append(targets, target{fields[0], fields[1]})
	}
	if err := scanner.Err(); err != nil {
		return nil, fmt.Errorf("reading the targets: %w", err)
	}
	if len(targets) == 0 {
		return nil, errors.New("no targets: want lines of a package and a target")
	}
	return targets, nil
}

// group returns one program for each sequence of targets of the same package.
func group(targets []target) []program {
	var programs []program
	for _, t := range targets {
		if last := len(programs) - 1; last >= 0 && programs[last].pkg == t.pkg {
			programs[last].targets = append(programs[last].targets, t.name)
			continue
		}
		programs = append(programs, program{pkg: t.pkg, targets: []string{t.name}})
	}
	return programs
}

// buildAll builds the programs in their order, one ahead of the receiver.
func buildAll(ctx context.Context, module, dir string, programs []program) <-chan program {
	built := make(chan program)
	go func() {
		defer close(built)
		for i, p := range programs {
			p.path = filepath.Join(dir, strconv.Itoa(i)+".test")
			p.err = build(ctx, module, &p)
			select {
			case built <- p:
			case <-ctx.Done():
				return
			}
		}
	}()
	return built
}

// build builds a program and finds its folders.
func build(ctx context.Context, module string, p *program) error {
	// The linters already do the checks of go vet, and no debugger reads the program. Coverage of
	// the module's own packages guides the fuzzing; with -fuzz, the go command would build all
	// dependencies a second time, those on Kubernetes among them.
	_, err := goOutput(ctx, module, "test", "-c", "-vet=off", "-ldflags=-w", "-gcflags=./...=-d=libfuzzer", "-o", p.path, p.pkg)
	if err != nil {
		return err
	}
	dir, err := goOutput(ctx, module, "list", "-f", "{{.Dir}}", p.pkg)
	if err != nil {
		return err
	}
	cache, err := goOutput(ctx, module, "env", "GOCACHE")
	if err != nil {
		return err
	}
	p.dir, p.cache = dir, filepath.Join(cache, "fuzz", filepath.FromSlash(p.pkg))
	return nil
}

// goOutput returns the output of the go command, without the last line break.
func goOutput(ctx context.Context, dir string, args ...string) (string, error) {
	var stderr strings.Builder
	command := exec.CommandContext(ctx, "go", args...)
	command.Dir, command.Stderr = dir, &stderr
	out, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, &stderr)
	}
	return strings.TrimSpace(string(out)), nil
}

// fuzz runs one target until its time ends or an input fails.
func fuzz(ctx context.Context, o options, p program, name string, out io.Writer) error {
	begun := &firstWrite{out: out, written: make(chan struct{})}
	command := exec.CommandContext(ctx, p.path, "-test.run=^$", "-test.fuzz=^"+name+"$", "-test.timeout=0",
		"-test.fuzzminimizetime="+o.minimizeTime, "-test.fuzzcachedir="+p.cache)
	command.Dir, command.Stdout, command.Stderr = p.dir, begun, begun
	if err := command.Start(); err != nil {
		return fmt.Errorf("%s in %s: %w", name, p.pkg, err)
	}
	ended := make(chan error, 1)
	go func() { ended <- command.Wait() }()
	err := interrupt(command.Process, begun.written, ended, o.time)
	if err != nil {
		return fmt.Errorf("%s in %s: %w", name, p.pkg, err)
	}
	return nil
}

// interrupt interrupts a process after the time since its first output, and returns its result.
// Before the first output, the process does not handle interrupts yet.
func interrupt(process *os.Process, begun <-chan struct{}, ended <-chan error, limit time.Duration) error {
	select {
	case err := <-ended:
		return err
	case <-begun:
	}
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case err := <-ended:
		return err
	case <-timer.C:
	}
	if err := process.Signal(os.Interrupt); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	return <-ended
}
