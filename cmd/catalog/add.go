package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/chandlery/chandlery/bundles/authoring/edit"
	"github.com/chandlery/chandlery/bundles/authoring/render"
	"github.com/chandlery/chandlery/bundles/authoring/update"
	"github.com/chandlery/chandlery/cmd/internal/flagenv"
)

// editOptions holds the settings of commands that change a catalog.
type editOptions struct {
	catalog string
	dryRun  bool
}

func (c *editOptions) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&c.catalog, "catalog", ".", "catalog directory, catalog file or template to change")
	flags.BoolVar(&c.dryRun, "dry-run", false, "print the changes; change nothing")
}

// run changes the files of a package and prints the changed files. With --diff it prints the changes instead.
func (c *editOptions) run(cmd *cobra.Command, pkg string, change func(*edit.Files) error) error {
	result, err := update.Run(cmd.Context(), update.Target{Path: c.catalog, Package: pkg, DryRun: c.dryRun}, change)
	if err != nil {
		return err //nolint:wrapcheck // names the file
	}
	if c.dryRun {
		fmt.Fprint(cmd.OutOrStdout(), result.Diff)
		return nil
	}
	for _, file := range result.Files {
		fmt.Fprintf(cmd.OutOrStdout(), "changed %s\n", file)
	}
	return nil
}

// addOptions are the flags of "catalog add".
type addOptions struct {
	read     readOptions
	edit     editOptions
	channels []string
	edges    edit.Edges
	create   bool
	migrate  string
}

func newAddCommand() *cobra.Command {
	var o addOptions
	cmd := &cobra.Command{
		Use:   "add BUNDLE...",
		Short: "Add bundles to a catalog or a template",
		Long: "Add bundles to the files of a catalog or to a template. A BUNDLE is a directory or an image. The command adds the\n" +
			"olm.bundle object, and an entry in each channel that --channel names. If you set none of --replaces, --skips and\n" +
			"--skip-range, the values in the bundle's ClusterServiceVersion apply. If it has no such values, the bundle replaces\n" +
			"the channel head.\n\n" +
			"In each channel, every bundle must keep an upgrade path to the channel head. Otherwise, the command changes nothing.\n" +
			"It preserves comments and the layout of the files. Several commands can change one catalog at the same time.",
		Example: "  catalog add ./bundles/lantern-1.1.0 --catalog ./catalog --channel stable --dry-run\n" +
			"  catalog add registry.example.com/team/lantern-bundle:v1.1.0 --catalog ./catalog --channel stable --skip-range '<1.1.0'",
		Args: cobra.MinimumNArgs(1),
		RunE: o.run,
	}
	o.edit.addFlags(cmd)
	flags := cmd.Flags()
	flags.StringSliceVarP(&o.channels, "channel", "c", nil, "channel to add the bundle to; may be repeated")
	flags.BoolVar(&o.create, "create-channels", false, "create missing channels; a missing default channel is always created")
	o.addEdgeFlags(flags)
	addMigrateFlag(cmd, &o.migrate, render.CSVMetadata)
	o.read.addFlags(flags)
	o.read.addImageRefFlag(flags)
	flagenv.Describe(flags, envPrefix)
	return cmd
}

func (o *addOptions) addEdgeFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.edges.Replaces, "replaces", "", "bundle that the new bundle replaces")
	flags.StringSliceVar(&o.edges.Skips, "skips", nil, "bundle that the new bundle skips; may be repeated")
	flags.StringVar(&o.edges.SkipRange, "skip-range", "", "range of versions that can upgrade directly to the new bundle, such as '>=1.0.0 <1.1.0'")
}

var (
	errNoChannels   = errors.New("name at least one channel with --channel")
	errManyPackages = errors.New("the bundles are of several packages; add those of one package at a time")
)

func (o *addOptions) run(cmd *cobra.Command, args []string) error {
	if len(o.channels) == 0 {
		return errNoChannels
	}
	addition, err := o.addition(cmd, args)
	if err != nil {
		return err
	}
	return o.edit.run(cmd, addition.Bundles[0].Package, func(files *edit.Files) error { return files.Add(addition) })
}

// addition renders the bundles to add.
func (o *addOptions) addition(cmd *cobra.Command, args []string) (*edit.Addition, error) {
	a := &edit.Addition{Channels: o.channels, Edges: o.edges, CreateChannels: o.create, References: map[string]string{}}
	err := o.read.with(cmd, func(opener *render.Opener) error {
		for _, reference := range args {
			b, err := opener.Bundle(cmd.Context(), reference, o.migrate)
			if err != nil {
				return fmt.Errorf("rendering: %w", err)
			}
			a.Bundles = append(a.Bundles, *b)
			a.References[b.Name] = b.Image
			if b.Package != a.Bundles[0].Package {
				return errManyPackages
			}
		}
		return nil
	})
	return a, err
}
