// Package program holds what the command lines of our programs have in common:
// the root command, the version, flags from the environment, and logging.
package program

import (
	"fmt"
	"os"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/chandlery/chandlery/cmd/internal/flagenv"
)

// Program is one of our programs.
type Program struct {
	// Name is what it is called by; Short says what it does in a line.
	Name, Short string
	// EnvPrefix begins the names of the variables that stand in for flags.
	EnvPrefix string
	// Version and Commit are what it was built from.
	Version, Commit string
}

// Command returns the root command with its sub-commands, a version command
// among them.
func (p Program) Command(commands ...*cobra.Command) *cobra.Command {
	root := &cobra.Command{
		Use:   p.Name,
		Short: p.Short,
		Long: p.Short + ".\n\n" +
			"Every flag can be set by the environment variable that its description names.",
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.NoArgs,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			return flagenv.Apply(cmd.Flags(), p.EnvPrefix, os.LookupEnv)
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return fmt.Errorf("%w; see '%s --help'", err, cmd.CommandPath())
	})
	root.AddCommand(commands...)
	root.AddCommand(p.version())
	return root
}

func (p Program) version() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "%s %s (commit %s, %s)\n", p.Name, p.Version, p.Commit, runtime.Version())
			if err != nil {
				return fmt.Errorf("printing the version: %w", err)
			}
			return nil
		},
	}
}
