// Command demo runs the whole system on a real control plane and prints a timeline: a catalog is
// served, an operator is installed and upgraded, the leading supervisor is stopped and another one
// takes over. Then everything remains running until it is interrupted.
//
//	go run ./test/demo                                   the sample catalog
//	go run ./test/demo --catalog DIR --package NAME,...  any catalog
//
// If a step does not succeed in time, it prints the state of the objects and exits with status 1.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
)

func main() { os.Exit(start()) }

// start runs the demo and returns the exit status.
func start() int {
	c, err := parse(os.Args[1:], os.Stderr)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// The client libraries log retries, which the timeline shows anyway.
	ctrl.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	// The first signal requests a clean end. A second one ends the program.
	context.AfterFunc(ctx, stop)
	if err := run(ctx, c, newPrinter(os.Stdout)); err != nil {
		fmt.Fprintln(os.Stderr, "\ndemo:", err)
		return 1
	}
	return 0
}
