package inspect

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/chandlery/chandlery/bundles"
	"github.com/chandlery/chandlery/bundles/diff"
	"github.com/chandlery/chandlery/bundles/outline"
	"github.com/chandlery/chandlery/cmd/internal/exitcode"
	"github.com/chandlery/chandlery/cmd/internal/flagenv"
)

// diffOptions are the flags of "diff".
type diffOptions struct {
	Program

	output   string
	exitCode string
	breaking bool
	pkg      string
}

// The values of --exit-code.
const (
	exitOnAny      = "any"
	exitOnBreaking = "breaking"
)

// Diff returns the command "diff" of a program.
func Diff(p Program) *cobra.Command {
	o := diffOptions{Program: p}
	cmd := &cobra.Command{
		Use:   "diff OLD NEW",
		Short: "Show the changes of a catalog update",
		Long: "Show the changes of a catalog update: packages, channels, channel heads, bundles and deprecations. A ! marks a\n" +
			"change that breaks installed versions: a removed package or channel, or a bundle that loses its upgrade path. A !\n" +
			"also marks a channel head that has a lower version, or that no longer provides an API.\n\n" +
			"OLD and NEW are sources.\n\n" + p.Sources + "\n\n" +
			"Exit codes:\n" +
			"  0  the catalogs were compared\n" +
			"  1  the catalogs differ in a way that --exit-code selects\n" +
			"  2  the catalogs could not be compared",
		Example: "  " + p.Name + " diff ./catalog-before ./catalog\n" +
			"  " + p.Name + " diff " + p.Image + " ./catalog -o markdown --exit-code=breaking",
		Args: func(cmd *cobra.Command, args []string) error { return exitcode.Troubled(Arguments(cmd, args, 2, 2)) },
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd, args[0], args[1]) },
	}
	p.Reader.AddFlags(cmd)
	AddOutputFlag(cmd, &o.output, "text", "text", "markdown", "json", "yaml")
	flags := cmd.Flags()
	flags.StringVar(&o.pkg, "package", "", "compare only the package with this name")
	flags.BoolVar(&o.breaking, "breaking", false, "show only changes with a !")
	flags.StringVar(&o.exitCode, "exit-code", "", "exit with 1 if the catalogs differ (any), or only if a change has a ! (breaking); default: exit with 0")
	flags.Lookup("exit-code").NoOptDefVal = exitOnAny
	flagenv.Describe(flags, p.EnvPrefix)
	cmd.SetFlagErrorFunc(TroubledFlags)
	return cmd
}

var errBadExitCode = errors.New("--exit-code must be any or breaking")

func (o *diffOptions) run(cmd *cobra.Command, before, after string) error {
	if err := CheckOutput(cmd, o.output); err != nil {
		return exitcode.Troubled(err)
	}
	if o.exitCode != "" && o.exitCode != exitOnAny && o.exitCode != exitOnBreaking {
		return exitcode.Troubled(fmt.Errorf("%w, found %q", errBadExitCode, o.exitCode))
	}
	changes, err := o.compare(cmd, before, after)
	if err != nil {
		return exitcode.Troubled(fmt.Errorf("comparing: %w", err))
	}
	breaking := diff.Breaking(changes)
	if o.breaking {
		changes = onlyBreaking(changes)
	}
	if err := printChanges(cmd.OutOrStdout(), o.output, changes); err != nil {
		return exitcode.Troubled(err)
	}
	if o.exitCode == exitOnAny && len(changes) > 0 || o.exitCode == exitOnBreaking && breaking > 0 {
		return exitcode.ErrFound()
	}
	return nil
}

func (o *diffOptions) compare(cmd *cobra.Command, before, after string) ([]diff.Change, error) {
	var sides [2]*outline.Catalog
	for i, argument := range []string{before, after} {
		catalog, err := o.Reader.Outline(cmd.Context(), cmd.ErrOrStderr(), argument, outline.Options{Manifests: true})
		if problems, ok := errors.AsType[bundles.Problems](err); ok {
			for i := range problems {
				problems[i] = located(argument, problems[i])
			}
			return nil, problems
		}
		if err != nil {
			return nil, err
		}
		sides[i] = catalog
	}
	if o.pkg != "" {
		found := false
		for i, side := range sides {
			p := side.Package(o.pkg)
			sides[i] = &outline.Catalog{}
			if p != nil {
				found = true
				sides[i].Packages = []*outline.Package{p}
			}
		}
		if !found {
			return nil, fmt.Errorf("neither side has it: %w: %q", ErrNoPackage, o.pkg)
		}
	}
	return diff.Catalogs(sides[0], sides[1]), nil
}

func onlyBreaking(changes []diff.Change) []diff.Change {
	out := []diff.Change{}
	for _, c := range changes {
		if c.Breaking != "" {
			out = append(out, c)
		}
	}
	return out
}

func printChanges(out io.Writer, form string, changes []diff.Change) error {
	var text string
	switch form {
	case "text":
		text = diff.Text(changes)
	case "markdown":
		text = diff.Markdown(changes)
	default:
		return PrintValue(out, form, changes)
	}
	if _, err := io.WriteString(out, text); err != nil {
		return fmt.Errorf("printing: %w", err)
	}
	return nil
}
