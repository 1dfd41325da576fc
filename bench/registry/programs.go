package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"

	"github.com/chandlery/chandlery/test/buildcache"
	"github.com/chandlery/chandlery/test/oracle"
)

// programs are the paths of the measured programs.
type programs struct {
	registry, floor, opm string
}

// buildPrograms builds the programs. It does not build the registry if a path is given.
func buildPrograms(ctx context.Context, dir, registry string, progress io.Writer) (programs, error) {
	p := programs{registry: registry, floor: filepath.Join(dir, "floor")}
	opm, err := oracle.Build(ctx, progress)
	if err != nil {
		return p, err
	}
	p.opm = opm
	if err := goBuild(ctx, "./bench/floor", p.floor); err != nil {
		return p, err
	}
	if registry != "" {
		return p, nil
	}
	p.registry = filepath.Join(dir, "registry")
	return p, goBuild(ctx, "./cmd/registry", p.registry)
}

// goBuild builds a package of this checkout with the flags of a release.
func goBuild(ctx context.Context, pkg, target string) error {
	root, err := buildcache.SourceDir(".")
	if err != nil {
		return fmt.Errorf("building %s: %w", pkg, err)
	}
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", target, pkg)
	cmd.Dir = root
	cmd.Env = append(cmd.Environ(), "CGO_ENABLED=0")
	if output, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("building %s: %w\n%s", pkg, err, output)
	}
	return nil
}

// command runs a program. Its error contains the output.
func command(ctx context.Context, name string, args ...string) error {
	output, err := exec.CommandContext(ctx, name, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("running %s %v: %w: %s", filepath.Base(name), args, err, firstLine(output))
	}
	return nil
}

// firstLine shortens the output of a program for a table.
func firstLine(output []byte) string {
	line, _, _ := bytes.Cut(bytes.TrimSpace(output), []byte("\n"))
	return string(line[:min(len(line), 200)])
}
