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

// The linker sets these.
var (
	version = "devel"
	commit  = "unknown"
)

// envPrefix is the prefix of the variables that set flags.
const envPrefix = "SUPERVISOR"

func main() {
	// The signals stay handled until the end. Process managers may send a second signal to the
	// whole process group, which must not interrupt the release of the Lease.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := newCommand().ExecuteContext(ctx); err != nil {
		os.Exit(int(console.Report(terminal.NewWriter(os.Stderr), "supervisor", err))) //nolint:gocritic // the process ends, and its signal handling with it
	}
}
