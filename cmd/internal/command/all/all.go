// Package all lists the commands that a user runs against a cluster. The supervisor has them in
// addition to its controllers. The kubectl plugin has only them.
package all

import (
	"github.com/spf13/cobra"

	"github.com/chandlery/chandlery/cmd/internal/command/approve"
	"github.com/chandlery/chandlery/cmd/internal/command/catalog"
	"github.com/chandlery/chandlery/cmd/internal/command/discover"
	"github.com/chandlery/chandlery/cmd/internal/command/explain"
	"github.com/chandlery/chandlery/cmd/internal/command/history"
	"github.com/chandlery/chandlery/cmd/internal/command/install"
	"github.com/chandlery/chandlery/cmd/internal/command/plan"
	"github.com/chandlery/chandlery/cmd/internal/command/remove"
	"github.com/chandlery/chandlery/cmd/internal/command/search"
	"github.com/chandlery/chandlery/cmd/internal/command/status"
	"github.com/chandlery/chandlery/cmd/internal/command/supportbundle"
	"github.com/chandlery/chandlery/cmd/internal/command/takeover"
	"github.com/chandlery/chandlery/cmd/internal/command/uninstall"
	"github.com/chandlery/chandlery/cmd/internal/command/wait"
	"github.com/chandlery/chandlery/cmd/internal/console"
	"github.com/chandlery/chandlery/cmd/internal/flagenv"
)

// Commands returns the commands for a program. name is how users call the program, envPrefix is the
// prefix of the variables that set flags, and agent is the user agent for API servers.
func Commands(name, envPrefix, agent string) []*cobra.Command {
	var commands []*cobra.Command
	for _, command := range []func(name, agent string) *cobra.Command{
		status.New,
		search.New,
		install.New,
		install.NewUpgrade,
		remove.New,
		catalog.New,
		explain.New,
		discover.New,
		approve.New,
		wait.New,
		plan.New,
		history.New,
		supportbundle.New,
		takeover.NewMigrate,
		takeover.New,
		takeover.NewHandBack,
		uninstall.New,
	} {
		one := command(name, agent)
		prepare(one, envPrefix)
		commands = append(commands, one)
	}
	return commands
}

// prepare completes a command and its sub-commands.
func prepare(cmd *cobra.Command, envPrefix string) {
	flagenv.Describe(cmd.Flags(), envPrefix)
	cmd.PreRun = func(*cobra.Command, []string) { console.Quiet() }
	for _, below := range cmd.Commands() {
		prepare(below, envPrefix)
	}
}
