// Package cli runs the programs of benchmarks and tests.
package cli

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// Run is the main function of a program. It passes the arguments to run, whose context ends with the first signal to
// stop. An error is printed after the name of the program, and the process exits with status 1. A request for help is
// no error.
func Run(name string, run func(ctx context.Context, args []string) error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM) //nolint:forbidigo // the caller is main
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, name+":", err)
		os.Exit(1) //nolint:forbidigo // the caller is main
	}
}
