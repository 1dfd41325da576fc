package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"time"
)

// bench is a run.
type bench struct {
	options

	programs programs
	// dir is the directory for all intermediate files.
	dir    string
	out    io.Writer
	report *report
	// index is the index file of the catalog; empty if there is none.
	index string
	// recorded are the calls that the floor answers.
	recorded *recorded
}

// section is a part of the run.
type section struct {
	name string
	of   func(*bench) runner
}

// runner measures a section, and adds its tables to the report.
type runner interface {
	run(ctx context.Context) error
}

// sections returns the sections in their order.
func sections() []section {
	return []section{
		{"cold", func(b *bench) runner { return coldSection{b} }},
		{"warm", func(b *bench) runner { return warmSection{b} }},
		{"size", func(b *bench) runner { return sizeSection{b} }},
		{"memory", func(b *bench) runner { return memorySection{b} }},
		{"limit", func(b *bench) runner { return limitSection{b} }},
		{"unary", func(b *bench) runner { return unarySection{b} }},
		{"list", func(b *bench) runner { return listSection{b} }},
		{"providers", func(b *bench) runner { return providerSection{b} }},
	}
}

func sectionNames() []string {
	var names []string
	for _, s := range sections() {
		names = append(names, s.name)
	}
	return names
}

// measure runs the selected sections. With an error it returns what was measured before.
func measure(ctx context.Context, o options, out io.Writer) (*report, error) {
	b := &bench{options: o, out: out, report: &report{}, dir: o.work}
	if b.dir == "" {
		dir, err := os.MkdirTemp("", "chandlery-bench-")
		if err != nil {
			return nil, fmt.Errorf("making a directory to work in: %w", err)
		}
		b.dir = dir
		defer os.RemoveAll(dir) //nolint:errcheck // it is in the directory for temporary files
	}
	if err := os.MkdirAll(b.dir, 0o755); err != nil {
		return nil, fmt.Errorf("making a directory to work in: %w", err)
	}
	if err := b.prepare(ctx); err != nil {
		return nil, err
	}
	for _, s := range sections() {
		if !b.only.MatchString(s.name) {
			continue
		}
		b.sayf("section %s", s.name)
		if err := s.of(b).run(ctx); err != nil {
			return b.report, fmt.Errorf("measuring section %s: %w", s.name, err)
		}
	}
	return b.report, nil
}

// prepare builds the programs and the index.
func (b *bench) prepare(ctx context.Context) error {
	built, err := buildPrograms(ctx, b.dir, b.registry, b.out)
	if err != nil {
		return err
	}
	b.programs = built
	size, files, err := treeSize(b.catalog)
	if err != nil {
		return err
	}
	b.report.intro = fmt.Sprintf("%d cores, %s of memory; %s; catalog of %d files, %s.",
		runtime.NumCPU(), bytesText(totalMemory()), runtime.Version(), files, bytesText(float64(size)))
	if b.index, err = b.buildIndex(ctx, b.catalog, "catalog.index"); err != nil {
		b.sayf("no index file: %v", err)
	}
	return nil
}

// buildIndex builds the index file of a catalog with the registry.
func (b *bench) buildIndex(ctx context.Context, catalog, name string) (string, error) {
	file := filepath.Join(b.dir, name)
	if err := command(ctx, b.programs.registry, "build", catalog, "-o", file); err != nil {
		return "", err
	}
	return file, nil
}

// sayf prints progress.
func (b *bench) sayf(format string, arguments ...any) {
	fmt.Fprintf(b.out, "%s  %s\n", time.Now().Format(time.TimeOnly), fmt.Sprintf(format, arguments...))
}

// content returns the source for warm starts: the index file, else the directory.
func (b *bench) content() string {
	if b.index != "" {
		return b.index
	}
	return b.catalog
}

// pause waits until servers are idle.
func (b *bench) pause(ctx context.Context) error { return wait(ctx, b.settle) }

// wait returns after a duration, or with the error of the context.
func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return fmt.Errorf("waiting: %w", context.Cause(ctx))
	case <-time.After(d):
		return nil
	}
}
