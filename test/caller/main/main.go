// Command main calls the registry at a given address until it is stopped, and prints a line of JSON
// for each call.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"github.com/chandlery/chandlery/test/caller"
	"github.com/chandlery/chandlery/test/cli"
)

func main() { cli.Run("caller", run) }

func run(ctx context.Context, args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("give one argument, the address of a registry; there are %d", len(args))
	}
	out := json.NewEncoder(os.Stdout)
	return caller.Run(ctx, args[0], caller.DefaultPace, func(c caller.Call) { _ = out.Encode(c) })
}
