package nodes

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
)

// current is the bed that Main has started, or why there is none. A test package has one.
var current struct {
	bed         *Bed
	unsupported error
}

// Main starts a bed, prepares it, runs the tests of the package, stops the bed and returns the exit
// code for TestMain. If tests fail, it keeps the logs and prints their path.
//
// If the machine cannot run nodes, it prints the reason and fails in CI ($CI is set). Elsewhere Get
// skips each test with the reason.
func Main(m *testing.M, o Options, prepare ...func(context.Context, *Bed) error) int {
	ctx := context.Background() //nolint:forbidigo // A test binary has no caller to take a context from.

	bed, err := Start(ctx, o)

	var unsupported *UnsupportedError
	if errors.As(err, &unsupported) && !inCI() {
		current.unsupported = unsupported

		return m.Run()
	}

	if err != nil {
		fmt.Fprintln(os.Stderr, err)

		return 1
	}

	code := runTests(ctx, m, bed, prepare)
	if code != 0 {
		keepLogs(bed)
	}

	err = bed.Stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)

		return max(code, 1)
	}

	return code
}

func inCI() bool { return os.Getenv("CI") != "" }

func runTests(ctx context.Context, m *testing.M, bed *Bed, prepare []func(context.Context, *Bed) error) int {
	for _, p := range prepare {
		err := p(ctx, bed)
		if err != nil {
			fmt.Fprintln(os.Stderr, "prepare the nodes:", err)

			return 1
		}
	}

	current.bed = bed

	return m.Run()
}

func keepLogs(bed *Bed) {
	dir, err := os.MkdirTemp("", prefix+"-logs-")
	if err == nil {
		err = bed.SaveLogs(dir)
	}

	if err != nil {
		fmt.Fprintln(os.Stderr, err)

		return
	}

	fmt.Fprintln(os.Stderr, "logs of the nodes:", dir)
}

// Get returns the bed that Main has started.
func Get(tb testing.TB) *Bed {
	tb.Helper()

	if current.unsupported != nil {
		tb.Skip(current.unsupported)
	}

	if current.bed == nil {
		tb.Fatal("no bed: TestMain has to call nodes.Main")
	}

	return current.bed
}

// Require is for a test that starts its own bed. If the machine cannot run nodes, it fails the test
// in CI ($CI is set) and skips it elsewhere, with the reason.
func Require(tb testing.TB) {
	tb.Helper()

	err := Check(tb.Context())

	switch {
	case err == nil:
	case inCI():
		tb.Fatal(err)
	default:
		tb.Skip(err)
	}
}

// Namespace creates a namespace for one test, named after it, and returns its name. The namespace
// is deleted when the test ends, without waiting for its content.
func (b *Bed) Namespace(tb testing.TB) string {
	tb.Helper()

	return b.plane.Namespace(tb)
}
