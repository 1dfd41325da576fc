// Command kubectl-chandlery shows what the supervisor does in a cluster, and installs and removes operators.
// It is a kubectl plugin, which kubectl runs as "kubectl chandlery". It also runs without kubectl.
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

// The linker sets these.
var (
	version = "devel"
	commit  = "unknown"
)

const (
	// called is the command that users type.
	called = "kubectl chandlery"
	// agent is the user agent for API servers.
	agent = "kubectl-chandlery"
	// envPrefix is the prefix of the variables that set flags.
	envPrefix = "CHANDLERY"
)

func main() {
	// The first interrupt ends a command that follows a cluster, without an error. A second one
	// ends a command that ignores the first.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	os.Exit(int(console.Report(terminal.NewWriter(os.Stderr), called, newCommand().ExecuteContext(ctx))))
}

// newCommand returns the root command with its sub-commands.
func newCommand() *cobra.Command {
	p := program.Program{
		Name: agent, Called: called, Short: "Inspect, install and remove the operators of a cluster",
		EnvPrefix: envPrefix, Version: version, Commit: commit,
		FlagGroupsOn: map[string]string{"image registry flags": "commands-registry.md"},
	}
	return p.Command(all.Commands(called, envPrefix, agent)...)
}
