// Package program holds what the command lines of the programs have in common: the root command,
// the version, flags from the environment, and logging.
package program

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"github.com/chandlery/chandlery/cmd/internal/flagenv"
	"github.com/chandlery/chandlery/cmd/internal/terminal"
)

// Program describes a program.
type Program struct {
	// Name is the name of the program's file. Short describes the program in one line.
	Name, Short string
	// Called is what users type to call the program; empty for its name.
	Called string
	// EnvPrefix is the prefix of the variables that set flags.
	EnvPrefix string
	// FlagGroupsOn maps a group of flags to the file name of the reference that lists it; the program's own lists others.
	FlagGroupsOn map[string]string
	// Version and Commit identify the source.
	Version, Commit string
}

// Command returns the root command with its sub-commands and a version command. Their output passes
// through a [terminal.Writer].
func (p Program) Command(commands ...*cobra.Command) *cobra.Command {
	root := &cobra.Command{
		Use:   p.Name,
		Short: p.Short,
		Long: p.Short + ".\n\n" +
			"You can also set each flag with the environment variable in its description.",
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.NoArgs,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			terminal.Protect(cmd.Root())
			return flagenv.Apply(cmd.Flags(), p.EnvPrefix, os.LookupEnv)
		},
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		Version: p.about(debug.ReadBuildInfo()),
	}
	if p.Called != "" {
		root.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: p.Called}
	}
	root.SetVersionTemplate("{{.Version}}\n")
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return fmt.Errorf("%w; see '%s --help'", flagenv.Explain(err), cmd.CommandPath())
	})
	root.AddCommand(commands...)
	root.AddCommand(p.version(), p.reference())
	strictCompletion(root)
	explainArguments(root)
	return root
}

// explainArguments adds similar commands or the usage line, and the command that shows the help, to the errors about
// arguments, for a command and its sub-commands.
func explainArguments(cmd *cobra.Command) {
	if check := cmd.Args; check != nil {
		cmd.Args = func(cmd *cobra.Command, args []string) error {
			if err := check(cmd, args); err != nil {
				if similar := similarCommands(cmd, args); len(similar) > 0 {
					return fmt.Errorf("%w; did you mean %s? See '%s --help'", err, strings.Join(similar, " or "), cmd.CommandPath())
				}
				return fmt.Errorf("%w: %s; see '%s --help'", err, cmd.UseLine(), cmd.CommandPath())
			}
			return nil
		}
	}
	for _, sub := range cmd.Commands() {
		explainArguments(sub)
	}
}

// similarCommands returns the sub-commands whose names resemble the first argument.
func similarCommands(cmd *cobra.Command, args []string) []string {
	if len(args) == 0 || args[0] == "" {
		return nil
	}
	const maxDistance = 2
	cmd.SuggestionsMinimumDistance = maxDistance
	return cmd.SuggestionsFor(args[0])
}

// strictCompletion makes the completion command return an error for an unknown shell. By default,
// cobra shows the help and succeeds.
func strictCompletion(root *cobra.Command) {
	// The completion command stores the output of the root at its creation.
	root.SetOut(lateOutput{root})
	root.InitDefaultCompletionCmd()
	root.SetOut(nil)
	for _, cmd := range root.Commands() {
		if cmd.Name() == "completion" {
			cmd.Args = cobra.NoArgs
			cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
		}
	}
}

// lateOutput writes to the current output of a command.
type lateOutput struct{ cmd *cobra.Command }

// Write writes to the current output of the command.
func (l lateOutput) Write(p []byte) (int, error) {
	return l.cmd.OutOrStdout().Write(p) //nolint:wrapcheck // it stands for the other
}

// about returns one line about the program. If the linker has set no version, it uses the build information.
func (p Program) about(info *debug.BuildInfo, _ bool) string {
	version, commit := p.Version, p.Commit
	if info != nil {
		if version == unversioned && info.Main.Version != "" && info.Main.Version != "(devel)" {
			version = info.Main.Version
		}
		for _, setting := range info.Settings {
			if setting.Key == "vcs.revision" && commit == uncommitted {
				commit = setting.Value
			}
		}
	}
	return fmt.Sprintf("%s %s (commit %s, %s, %s/%s)", p.Name, version, commit, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

// The version and commit if the linker has set none.
const (
	unversioned = "devel"
	uncommitted = "unknown"
)

func (p Program) version() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if _, err := fmt.Fprintln(cmd.OutOrStdout(), p.about(debug.ReadBuildInfo())); err != nil {
				return fmt.Errorf("printing the version: %w", err)
			}
			return nil
		},
	}
}
