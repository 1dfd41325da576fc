package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/chandlery/chandlery/bundles/authoring/merge"
	"github.com/chandlery/chandlery/bundles/authoring/render"
	"github.com/chandlery/chandlery/cmd/internal/flagenv"
)

// rewriteOptions are the flags of commands that make a catalog of whole catalogs.
type rewriteOptions struct {
	reading reading
	output  catalogOutput
	migrate string
}

func newConvertCommand() *cobra.Command {
	var o rewriteOptions
	cmd := &cobra.Command{
		Use:   "convert CATALOG",
		Short: "Convert the objects of a catalog to newer forms",
		Long: "Convert the objects of a catalog, a directory or an image, to newer forms: olm.bundle.object properties of bundles\n" +
			"that have an image become olm.csv.metadata, which is a fraction of the size. Bundles without an image keep their\n" +
			"manifests. Databases of the format before file-based catalogs cannot be read.",
		Example: "  catalog convert ./catalog --to ./converted\n" +
			"  catalog convert registry.example.com/team/catalog:v1 -o yaml > catalog.yaml",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.reading.with(cmd, func(opener *render.Opener) error {
				source, err := openAll(cmd, opener, args)
				if err != nil {
					return err
				}
				if source, err = render.Migrated(source, o.migrate); err != nil {
					return fmt.Errorf("--migrate-level: %w", err)
				}
				return o.output.write(cmd, o.reading.quiet, "Converting "+args[0], source)
			})
		},
	}
	o.output.addFlags(cmd)
	addMigrateFlag(cmd, &o.migrate, render.CSVMetadata)
	o.reading.addFlags(cmd.Flags())
	flagenv.Describe(cmd.Flags(), envPrefix)
	return cmd
}

func newMergeCommand() *cobra.Command {
	var o rewriteOptions
	cmd := &cobra.Command{
		Use:   "merge CATALOG...",
		Short: "Make one catalog of several",
		Long: "Make one catalog of several, directories or images. Objects that several have alike are kept once; the entries of\n" +
			"channels and deprecations are joined. Where the catalogs differ in an object nothing is written.",
		Example: "  catalog merge ./ours registry.example.com/team/catalog:v1 --to ./catalog",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.reading.with(cmd, func(opener *render.Opener) error {
				source, err := openAll(cmd, opener, args)
				if err != nil {
					return err
				}
				source = merge.Sources(source)
				if err := merge.Check(cmd.Context(), source); err != nil {
					return err //nolint:wrapcheck // says what it does
				}
				return o.output.write(cmd, o.reading.quiet, "Merging", source)
			})
		},
	}
	o.output.addFlags(cmd)
	o.reading.addFlags(cmd.Flags())
	flagenv.Describe(cmd.Flags(), envPrefix)
	return cmd
}
