package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/chandlery/chandlery/bundles/drawing"
	"github.com/chandlery/chandlery/bundles/outline"
	"github.com/chandlery/chandlery/cmd/internal/flagenv"
	"github.com/chandlery/chandlery/cmd/internal/inspect"
)

// graphOptions are the flags of "registry graph".
type graphOptions struct {
	read    readOptions
	output  string
	channel string
}

func newGraphCommand() *cobra.Command {
	var o graphOptions
	cmd := &cobra.Command{
		Use:   "graph SOURCE PACKAGE",
		Short: "Draw the upgrade graph of a package",
		Long: "Draw the upgrade graph of a package: channels and their heads, the bundles that each bundle replaces and\n" +
			"skips, skip ranges, and deprecations. Arrows point in the direction of upgrades.\n\n" + sourceHelp,
		Example: "  registry graph ./catalog lantern -o svg > lantern.svg\n" +
			"  registry graph ./catalog lantern --channel stable -o mermaid",
		Args:              between(2, 2),
		ValidArgsFunction: o.read.completePackages(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.run(cmd, args[0], args[1])
		},
	}
	o.read.addFlags(cmd)
	inspect.AddOutputFlag(cmd, &o.output, "mermaid", "mermaid", "dot", "svg", "json", "yaml")
	cmd.Flags().StringVar(&o.channel, "channel", "", "draw only the channel with this name")
	flagenv.Describe(cmd.Flags(), envPrefix)
	return cmd
}

func (o *graphOptions) run(cmd *cobra.Command, argument, pkg string) error {
	if err := inspect.CheckOutput(cmd, o.output); err != nil {
		return err
	}
	catalog, err := o.read.outline(cmd.Context(), cmd.ErrOrStderr(), argument, outline.Options{})
	if err != nil {
		return fmt.Errorf("drawing: %w", err)
	}
	catalog, err = filterCatalog(catalog, pkg, o.channel)
	if err != nil {
		return fmt.Errorf("drawing: %w", err)
	}
	return draw(cmd.OutOrStdout(), o.output, catalog.Packages[0])
}

// draw writes the graph of a package in a format.
func draw(out io.Writer, form string, p *outline.Package) error {
	var text string
	switch form {
	case "mermaid":
		text = drawing.Mermaid(p)
	case "dot":
		text = drawing.DOT(p)
	case "svg":
		text = drawing.SVG(p)
	default:
		return inspect.PrintValue(out, form, p)
	}
	if _, err := io.WriteString(out, text); err != nil {
		return fmt.Errorf("printing: %w", err)
	}
	return nil
}
