// Command main calls the registry at a given address until it is stopped, and prints a line of JSON
// for each call.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/chandlery/chandlery/test/caller"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "caller:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("give one argument, the address of a registry; there are %d", len(args))
	}
	out := json.NewEncoder(os.Stdout)
	return caller.Run(ctx, args[0], caller.DefaultPace, func(c caller.Call) { _ = out.Encode(c) })
}
