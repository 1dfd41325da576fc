// Command packages prints the packages of the module for a make target. The requirements of a test decide
// its class, because tags could be forgotten. Each test belongs to one of unit, long, short, nodes and peers:
//
//	packages unit    tests that need nothing but Go
//	packages long    suites that take minutes; a suite needs programs built by test/buildcache
//	                 (a control plane, a peer server)
//	packages short   the other suites
//	packages e2e     of both, the end-to-end suites: our programs as processes (below test/e2e)
//	packages nodes   end-to-end suites on several real nodes: nothing runs beside them
//	packages peers   those that only watch programs which run apart from them: in no other class
//	packages bench   packages with benchmarks
//	packages fuzz    one "PACKAGE TARGET" line for each fuzz target
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/chandlery/chandlery/test/golist"
)

func main() {
	if err := run(context.Background(), os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "packages:", err)
		os.Exit(1)
	}
}

// run prints the lines for the arguments.
func run(ctx context.Context, args []string, out io.Writer) error {
	if len(args) == 0 {
		return fmt.Errorf("want one class or more (%s)", strings.Join(classes(), ", "))
	}
	packages, err := golist.Load(ctx, ".", "./...")
	if err != nil {
		return fmt.Errorf("listing the packages of the module: %w", err)
	}
	var all []string
	for _, class := range args {
		lines, err := lines(class, packages)
		if err != nil {
			return err
		}
		all = append(all, lines...)
	}
	for _, line := range longFirst(all) {
		fmt.Fprintln(out, line)
	}
	return nil
}
