package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/chandlery/chandlery/bundles/authoring/merge"
	"github.com/chandlery/chandlery/bundles/authoring/render"
	"github.com/chandlery/chandlery/cmd/internal/flagenv"
)

// rewriteOptions are the flags of commands that write a catalog from whole catalogs.
type rewriteOptions struct {
	read    readOptions
	output  catalogOutput
	migrate string
}

func newConvertCommand() *cobra.Command {
	var o rewriteOptions
	cmd := &cobra.Command{
		Use:   "convert CATALOG",
		Short: "Convert the objects of a catalog to newer forms",
		Long: "Convert the objects of a catalog to newer forms. CATALOG is a directory or an image. If a bundle has an image, its\n" +
			"olm.bundle.object properties become olm.csv.metadata, which is much smaller. Bundles without an image keep their\n" +
			"manifests. The command cannot read SQLite databases, which older catalogs use.",
		Example: "  catalog convert ./catalog --to ./converted\n" +
			"  catalog convert registry.example.com/team/catalog:v1 -o yaml > catalog.yaml",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.read.with(cmd, func(opener *render.Opener) error {
				source, err := openAll(cmd, opener, args)
				if err != nil {
					return err
				}
				if source, err = render.Migrated(source, o.migrate); err != nil {
					return fmt.Errorf("--migrate-level: %w", err)
				}
				return o.output.write(cmd, o.read.quiet, "Converting "+args[0], source)
			})
		},
	}
	o.output.addFlags(cmd)
	addMigrateFlag(cmd, &o.migrate, render.CSVMetadata)
	o.read.addFlags(cmd.Flags())
	flagenv.Describe(cmd.Flags(), envPrefix)
	return cmd
}

func newMergeCommand() *cobra.Command {
	var o rewriteOptions
	cmd := &cobra.Command{
		Use:   "merge CATALOG...",
		Short: "Merge several catalogs into one",
		Long: "Merge several catalogs into one. Each CATALOG is a directory or an image. The command writes identical objects\n" +
			"once, and merges channel entries and deprecations. If any other object differs between catalogs, the command\n" +
			"writes nothing.",
		Example: "  catalog merge ./ours registry.example.com/team/catalog:v1 --to ./catalog",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.read.with(cmd, func(opener *render.Opener) error {
				source, err := openAll(cmd, opener, args)
				if err != nil {
					return err
				}
				source = merge.Sources(source)
				if err := merge.Check(cmd.Context(), source); err != nil {
					return err //nolint:wrapcheck // says what it does
				}
				return o.output.write(cmd, o.read.quiet, "Merging", source)
			})
		},
	}
	o.output.addFlags(cmd)
	o.read.addFlags(cmd.Flags())
	flagenv.Describe(cmd.Flags(), envPrefix)
	return cmd
}
