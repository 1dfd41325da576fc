// Command supervisor keeps the operators of a cluster installed and up to date.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// Set by the linker.
var (
	version = "devel"
	commit  = "unknown"
)

// envPrefix begins the names of the variables that stand in for flags.
const envPrefix = "SUPERVISOR"

func main() {
	// The signals stay caught until the very end: a second one, as supervising
	// programs send it to a whole process group, must not cut off the hand-over.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := newCommand().ExecuteContext(ctx); err != nil {
		if !errors.Is(err, errNotInstalled) {
			fmt.Fprintln(os.Stderr, "supervisor:", err)
		}
		os.Exit(exitCode(err)) //nolint:gocritic // the process ends, and its signal handling with it
	}
}

// exitCode is how the program ends after an error.
func exitCode(err error) int {
	if errors.Is(err, errNotInstalled) {
		return 2
	}
	return 1
}
