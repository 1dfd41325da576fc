// Package golist lists the packages of the module and their dependencies with the go command, for
// checks and the test runner.
package golist

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
)

// Package is one package of the module, with its tests.
type Package struct {
	// ImportPath is the path by which the package is imported.
	ImportPath string
	// Dir is the absolute folder of its sources.
	Dir string
	// TestFiles are the names of its test files, internal and external.
	TestFiles []string
	// Imports are the packages its product code imports directly.
	Imports []string
	// Deps are the packages that its product code depends on, directly or not.
	Deps []string
	// TestDeps are the packages that its test binary depends on, directly or not; empty without tests.
	TestDeps []string
}

// entry is the output of `go list -json` for a package or a test binary.
type entry struct {
	ImportPath   string   `json:"ImportPath"`
	Dir          string   `json:"Dir"`
	Name         string   `json:"Name"`
	ForTest      string   `json:"ForTest"`
	TestGoFiles  []string `json:"TestGoFiles"`
	XTestGoFiles []string `json:"XTestGoFiles"`
	Imports      []string `json:"Imports"`
	Deps         []string `json:"Deps"`
}

// Load returns the packages of the module in the folder dir that match the patterns ("./..." for
// all), in the order of go list. If go list fails, the error contains its output.
func Load(ctx context.Context, dir string, patterns ...string) ([]Package, error) {
	args := append([]string{
		"list", "-test",
		"-json=ImportPath,Dir,Name,ForTest,TestGoFiles,XTestGoFiles,Imports,Deps",
	}, patterns...)
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list %s: %w\n%s", strings.Join(patterns, " "), err, stderr.String())
	}
	return decode(bytes.NewReader(out))
}

// decode parses the stream of JSON documents of `go list -test`. It returns packages, ignores
// variants of packages for a test, and takes the test dependencies from the main package PATH.test
// of each test binary.
func decode(r io.Reader) ([]Package, error) {
	var packages []Package
	testDeps := map[string][]string{}
	for dec := json.NewDecoder(r); ; {
		var e entry
		if err := dec.Decode(&e); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("decoding the output of go list: %w", err)
		}
		tested, isTestBinary := strings.CutSuffix(e.ImportPath, ".test")
		switch {
		case isTestBinary && e.Name == "main":
			testDeps[tested] = clean(e.Deps)
		case e.ForTest == "":
			packages = append(packages, Package{
				ImportPath: e.ImportPath,
				Dir:        e.Dir,
				TestFiles:  append(e.TestGoFiles, e.XTestGoFiles...),
				Imports:    e.Imports,
				Deps:       e.Deps,
			})
		}
	}
	for i := range packages {
		packages[i].TestDeps = testDeps[packages[i].ImportPath]
	}
	return packages, nil
}

// clean removes the suffix " [PATH.test]" of packages compiled for one test.
func clean(deps []string) []string {
	paths := make([]string, len(deps))
	for i, dep := range deps {
		paths[i], _, _ = strings.Cut(dep, " ")
	}
	return paths
}
