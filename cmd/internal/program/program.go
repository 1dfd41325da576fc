// Package program holds what the command lines of our programs have in common:
// the root command, the version, flags from the environment, and logging.
package program

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/chandlery/chandlery/cmd/internal/flagenv"
	"github.com/chandlery/chandlery/cmd/internal/terminal"
)

// Program is one of our programs.
type Program struct {
	// Name is that of its file; Short says what it does in a line.
	Name, Short string
	// Called is what a person calls it by; empty: its name.
	Called string
	// EnvPrefix begins the names of the variables that stand in for flags.
	EnvPrefix string
	// Version and Commit are what it was built from.
	Version, Commit string
}

// Command returns the root command with its sub-commands, a version command
// among them. What they write passes a [terminal.Writer].
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
		return fmt.Errorf("%w; see '%s --help'", err, cmd.CommandPath())
	})
	root.AddCommand(commands...)
	root.AddCommand(p.version(), p.reference())
	strictCompletion(root)
	return root
}

// strictCompletion lets the command for completion report a shell that it does
// not know. Left alone it shows its help and takes that for success.
func strictCompletion(root *cobra.Command) {
	// It keeps where the root writes when it is made.
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

// lateOutput writes to where a command writes by then.
type lateOutput struct{ cmd *cobra.Command }

// Write passes on.
func (l lateOutput) Write(p []byte) (int, error) {
	return l.cmd.OutOrStdout().Write(p) //nolint:wrapcheck // it stands for the other
}

// about says in a line what runs. What the linker was not told may be in the
// build information.
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

// What programs say of themselves when nobody told the linker.
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
