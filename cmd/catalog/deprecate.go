package main

import (
	"errors"

	"github.com/operator-framework/operator-registry/alpha/declcfg"
	"github.com/spf13/cobra"

	"github.com/chandlery/chandlery/bundles/authoring/edit"
	"github.com/chandlery/chandlery/cmd/internal/flagenv"
)

// deprecateOptions are the flags of "catalog deprecate".
type deprecateOptions struct {
	edit                     editOptions
	channel, bundle, message string
}

func newDeprecateCommand() *cobra.Command {
	var o deprecateOptions
	cmd := &cobra.Command{
		Use:   "deprecate PACKAGE",
		Short: "Deprecate a package, a channel or a bundle",
		Long: "Deprecate a package, a channel or a bundle, in the olm.deprecations object of a catalog or of a template. Without\n" +
			"--channel and --bundle, the command deprecates the package. A new message replaces an earlier one.",
		Example: "  catalog deprecate lantern --catalog ./catalog --channel candidate --message 'Use the channel stable.'\n" +
			"  catalog deprecate lantern --catalog ./catalog --bundle lantern.v1.0.0 --message 'Loses oil. Upgrade to 1.1.0.' --dry-run",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd, args[0]) },
	}
	o.edit.addFlags(cmd)
	flags := cmd.Flags()
	flags.StringVarP(&o.channel, "channel", "c", "", "deprecate the channel with this name")
	flags.StringVarP(&o.bundle, "bundle", "b", "", "deprecate the bundle with this name")
	flags.StringVarP(&o.message, "message", "m", "", "reason for the deprecation, and what to use instead")
	flagenv.Describe(flags, envPrefix)
	return cmd
}

var errOneThing = errors.New("give --channel or --bundle, not both; without them the package is deprecated")

func (o *deprecateOptions) run(cmd *cobra.Command, pkg string) error {
	reference := declcfg.PackageScopedReference{Schema: declcfg.SchemaPackage}
	switch {
	case o.channel != "" && o.bundle != "":
		return errOneThing
	case o.channel != "":
		reference = declcfg.PackageScopedReference{Schema: declcfg.SchemaChannel, Name: o.channel}
	case o.bundle != "":
		reference = declcfg.PackageScopedReference{Schema: declcfg.SchemaBundle, Name: o.bundle}
	}
	return o.edit.run(cmd, pkg, func(files *edit.Files) error { return files.Deprecate(reference, o.message) })
}
