// Command supervisor keeps the operators of a cluster installed and up to date.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/chandlery/chandlery/cmd/internal/console"
	"github.com/chandlery/chandlery/cmd/internal/terminal"
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
		os.Exit(int(console.Report(terminal.NewWriter(os.Stderr), "supervisor", err))) //nolint:gocritic // the process ends, and its signal handling with it
	}
}
