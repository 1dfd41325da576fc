package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/chandlery/chandlery/bundles/authoring/prune"
	"github.com/chandlery/chandlery/bundles/authoring/render"
	"github.com/chandlery/chandlery/cmd/internal/flagenv"
	"github.com/chandlery/chandlery/cmd/internal/selectionflags"
)

// pruneOptions are the flags of "catalog prune".
type pruneOptions struct {
	read      readOptions
	selection selectionflags.Flags
	output    catalogOutput
}

func newPruneCommand() *cobra.Command {
	var o pruneOptions
	cmd := &cobra.Command{
		Use:   "prune CATALOG",
		Short: "Create a catalog from a part of another catalog",
		Long: "Create a catalog from a part of another catalog. The flags select the part. CATALOG is a directory or an image.\n" +
			"An installed version outside this part can still upgrade to a version in it. Standard error lists the bundles\n" +
			"that the command adds as dependencies, and the requirements that no selected bundle meets.",
		Example: "  catalog prune ./catalog --package lantern --dependencies --to ./pruned\n" +
			"  catalog prune registry.example.com/team/catalog:v1 --selection imageset.yaml -o yaml > catalog.yaml",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd, args[0]) },
	}
	o.output.addFlags(cmd)
	o.selection.AddFlags(cmd.Flags())
	o.read.addFlags(cmd.Flags())
	flagenv.Describe(cmd.Flags(), envPrefix)
	return cmd
}

func (o *pruneOptions) run(cmd *cobra.Command, catalog string) error {
	return o.read.with(cmd, func(opener *render.Opener) error {
		source, err := selected(cmd, opener, &o.selection, catalog)
		if err != nil {
			return err
		}
		return o.output.write(cmd, o.read.quiet, "Pruning "+catalog, source)
	})
}

var errNoCatalog = errors.New("is a bundle; name a catalog")

// selected returns the part of a catalog that the flags select.
func selected(cmd *cobra.Command, opener *render.Opener, flags *selectionflags.Flags, catalog string) (render.Source, error) {
	wanted, err := flags.Selection(catalog)
	if err != nil {
		return nil, err //nolint:wrapcheck // names the flag
	}
	source, err := opener.Open(cmd.Context(), catalog)
	if err != nil {
		return nil, fmt.Errorf("reading the catalog: %w", err)
	}
	whole, ok := source.(*render.Directory)
	if !ok {
		return nil, fmt.Errorf("%s %w", catalog, errNoCatalog)
	}
	if wanted == nil {
		return whole, nil
	}
	pruned, err := prune.Select(cmd.Context(), whole, wanted)
	if err != nil {
		return nil, err //nolint:wrapcheck // says what it does
	}
	for _, a := range pruned.Selected().Additions() {
		fmt.Fprintf(cmd.ErrOrStderr(), "catalog: added %s of package %s: %s of package %s requires %s\n", a.Bundle, a.Package, a.ForBundle, a.ForPackage, a.Requirement)
	}
	for _, u := range pruned.Selected().Unmet() {
		fmt.Fprintf(cmd.ErrOrStderr(), "catalog: no selected bundle meets the requirement of %s of package %s: %s\n", u.Bundle, u.Package, u.Requirement)
	}
	return pruned, nil
}
