package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/chandlery/chandlery/test/golist"
)

const (
	// builder is the package on which every test with built programs depends.
	builder = "github.com/chandlery/chandlery/test/buildcache"
	// endToEnd is the path above the end-to-end suites.
	endToEnd = "github.com/chandlery/chandlery/test/e2e"
	// realNodes is the folder of end-to-end suites on several real nodes. compatNodes are the compatibility tests with one.
	realNodes   = endToEnd + "/nodes"
	compatNodes = module + "test/compat/nodes"
)

const module = "github.com/chandlery/chandlery/"

// peers returns the packages whose tests compare the output of separate programs. The race detector
// cannot check those programs and makes the comparison ten times slower.
func peers() []string { return []string{module + "test/conformance", module + "deploy/images"} }

// long returns the packages whose tests take minutes, in the order in which they begin. They run first:
// at the end, nothing would remain to run in parallel.
func long() []string {
	return []string{
		endToEnd + "/takeover", endToEnd + "/owners",
		module + "supervisor/controllers/clusterserviceversion/suite", endToEnd, module + "supervisor/controllers/installplan/suite",
		endToEnd + "/explain", module + "cmd/internal/command/uninstall/suite", endToEnd + "/tenant", module + "deploy/release/suite",
		module + "supervisor/controllers/catalogsource/suite", compatNodes, module + "test/compat",
		endToEnd + "/faults", endToEnd + "/transitions", endToEnd + "/scale",
		endToEnd + "/inventory", module + "cmd/internal/command/suite", endToEnd + "/cleanup",
		module + "supervisor/controllers/copiedcsv/suite", module + "deploy/suite", module + "supervisor/controllers/subscription/suite",
		module + "supervisor/migration/suite", module + "supervisor/controllers/packagemanifest/suite", endToEnd + "/packages",
		module + "supervisor/controllers/failover/suite", module + "supervisor/catalogs", module + "supervisor/informer",
	}
}

// classes returns the names of the classes, in the order of the documentation.
func classes() []string {
	return []string{"unit", "long", "short", "e2e", "nodes", "peers", "bench", "fuzz"}
}

// lines returns the output for a class.
func lines(class string, packages []golist.Package) ([]string, error) {
	switch class {
	case "unit":
		return longFirst(paths(packages, isUnit)), nil
	case "long":
		return longFirst(paths(packages, func(p golist.Package) bool { return isParallelSuite(p) && isLong(p) })), nil
	case "short":
		return paths(packages, func(p golist.Package) bool { return isParallelSuite(p) && !isLong(p) }), nil
	case "e2e":
		return longFirst(paths(packages, hasNoNodes)), nil
	case "nodes":
		return paths(packages, hasNodes), nil
	case "peers":
		return paths(packages, isPeer), nil
	case "bench":
		return benchmarks(packages)
	case "fuzz":
		return fuzzTargets(packages)
	}
	return nil, fmt.Errorf("unknown class %q: want one of %s", class, strings.Join(classes(), ", "))
}

// isEndToEnd reports whether the package belongs to the end-to-end suites.
func isEndToEnd(p golist.Package) bool {
	return p.ImportPath == compatNodes || p.ImportPath == endToEnd || strings.HasPrefix(p.ImportPath, endToEnd+"/")
}

// isUnit reports whether the package's tests need only Go.
func isUnit(p golist.Package) bool { return !isEndToEnd(p) && !isPeer(p) && !isSuite(p) }

// isParallelSuite reports whether the package is a suite that may run beside others.
func isParallelSuite(p golist.Package) bool {
	return hasNoNodes(p) || !isUnit(p) && !isEndToEnd(p) && !isPeer(p)
}

// isLong reports whether the tests of the package take minutes.
func isLong(p golist.Package) bool { return slices.Contains(long(), p.ImportPath) }

// hasNoNodes reports whether the package is an end-to-end suite that may run beside others.
func hasNoNodes(p golist.Package) bool { return isEndToEnd(p) && !hasNodes(p) }

// isPeer reports whether the package's tests only run other programs.
func isPeer(p golist.Package) bool { return slices.Contains(peers(), p.ImportPath) }

// hasNodes reports whether the package's tests run alone, on several real nodes.
func hasNodes(p golist.Package) bool {
	return p.ImportPath == realNodes || strings.HasPrefix(p.ImportPath, realNodes+"/")
}

// isSuite reports whether the package's tests need programs that are built beforehand.
func isSuite(p golist.Package) bool {
	return slices.Contains(p.TestDeps, builder)
}

// paths returns the import paths of the packages for which keep returns true.
func paths(packages []golist.Package, keep func(golist.Package) bool) []string {
	var kept []string
	for _, p := range packages {
		if keep(p) {
			kept = append(kept, p.ImportPath)
		}
	}
	return kept
}

// longFirst sorts the packages with long tests before the others.
func longFirst(paths []string) []string {
	place := func(path string) int {
		if i := slices.Index(long(), path); i >= 0 {
			return i
		}
		return len(long())
	}
	slices.SortStableFunc(paths, func(a, b string) int { return place(a) - place(b) })
	return paths
}

// benchmarks returns the packages with at least one benchmark.
func benchmarks(packages []golist.Package) ([]string, error) {
	var found []string
	for _, p := range packages {
		names, err := functions(p, "Benchmark")
		if err != nil {
			return nil, err
		}
		if len(names) > 0 {
			found = append(found, p.ImportPath)
		}
	}
	return found, nil
}

// fuzzTargets returns a "PACKAGE TARGET" line for each fuzz target.
func fuzzTargets(packages []golist.Package) ([]string, error) {
	var found []string
	for _, p := range packages {
		names, err := functions(p, "Fuzz")
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			found = append(found, p.ImportPath+" "+name)
		}
	}
	return found, nil
}

// functions returns the names of the test functions with the prefix in all test
// files of the package.
func functions(p golist.Package, prefix string) ([]string, error) {
	var names []string
	for _, name := range p.TestFiles {
		path := filepath.Join(p.Dir, name)
		file, err := os.Open(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue // removed after go list has run
		}
		if err != nil {
			return nil, fmt.Errorf("looking for %s functions: %w", prefix, err)
		}
		found, err := scan(file, prefix)
		if err = errors.Join(err, file.Close()); err != nil {
			return nil, fmt.Errorf("looking for %s functions in %s: %w", prefix, path, err)
		}
		names = append(names, found...)
	}
	return names, nil
}

// declaration matches the first line of a top-level function.
var declaration = regexp.MustCompile(`^func ([A-Z][A-Za-z0-9_]*)\(`)

// scan returns the names of the top-level functions with the prefix.
func scan(source io.Reader, prefix string) ([]string, error) {
	var names []string
	scanner := bufio.NewScanner(source)
	scanner.Buffer(nil, 16<<20) // embedded test data may have long lines
	for scanner.Scan() {
		match := declaration.FindStringSubmatch(scanner.Text())
		if len(match) == 2 && strings.HasPrefix(match[1], prefix) {
			names = append(names, match[1])
		}
	}
	return names, scanner.Err()
}
