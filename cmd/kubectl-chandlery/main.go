// Command kubectl-chandlery looks at what the supervisor does in a cluster, and approves
// what waits. It is a plugin of kubectl, which calls it as "kubectl chandlery", and runs
// by itself too.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/chandlery/chandlery/cmd/internal/command/all"
	"github.com/chandlery/chandlery/cmd/internal/console"
	"github.com/chandlery/chandlery/cmd/internal/program"
	"github.com/chandlery/chandlery/cmd/internal/terminal"
)

// Set by the linker.
var (
	version = "devel"
	commit  = "unknown"
)

const (
	// called is how a person calls the program.
	called = "kubectl chandlery"
	// agent is what it tells API servers of itself.
	agent = "kubectl-chandlery"
	// envPrefix begins the names of the variables that stand in for flags.
	envPrefix = "CHANDLERY"
)

func main() {
	// An interrupt ends what follows a cluster, which is no error; a second one ends
	// whatever does not heed the first.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	os.Exit(int(console.Report(terminal.NewWriter(os.Stderr), called, newCommand().ExecuteContext(ctx))))
}

// newCommand gives the command with its sub-commands.
func newCommand() *cobra.Command {
	p := program.Program{
		Name: agent, Called: called, Short: "Inspect the operators of a cluster, and approve InstallPlans",
		EnvPrefix: envPrefix, Version: version, Commit: commit,
	}
	return p.Command(all.Commands(called, envPrefix, agent)...)
}
