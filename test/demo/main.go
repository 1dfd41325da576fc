// Command demo shows the whole system at work on a real control plane, as a
// timeline: a catalog is served, an operator installed and upgraded, the leading
// supervisor stopped and its work taken over. Then it is left running to be looked
// at, until interrupted.
//
//	go run ./test/demo                                   the sample catalog
//	go run ./test/demo --catalog DIR --package NAME,...  any catalog
//
// It ends with status 1, and says what state the objects are in, when something
// does not come true in time.
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
	// What the client libraries log is about retries that the story shows anyway.
	ctrl.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	// The first signal asks for a clean end; a second one is not held back.
	context.AfterFunc(ctx, stop)
	if err := run(ctx, c, newTeller(os.Stdout)); err != nil {
		fmt.Fprintln(os.Stderr, "\ndemo:", err)
		return 1
	}
	return 0
}
