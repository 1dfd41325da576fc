package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/chandlery/chandlery/bundles/authoring/graph"
	"github.com/chandlery/chandlery/bundles/authoring/render"
	"github.com/chandlery/chandlery/cmd/internal/document"
	"github.com/chandlery/chandlery/cmd/internal/flagenv"
)

// templateOptions are the flags of "catalog template".
type templateOptions struct {
	read    readOptions
	output  catalogOutput
	migrate string
}

func newTemplateCommand() *cobra.Command {
	var o templateOptions
	types := strings.Join(render.TemplateTypes(), "|")
	cmd := &cobra.Command{
		Use:   "template [" + types + "] FILE",
		Short: "Render a catalog template, or draw its upgrade graph",
		Long: "Render a catalog template (" + types + ") to a file-based catalog, or draw its upgrade graph with -o mermaid or\n" +
			"-o svg. Without a type argument, the schema of the template determines the type. If FILE is -, the command reads\n" +
			"standard input. A template names bundles by image or by directory.",
		Example: "  catalog template semver lantern.yaml -o yaml > catalog.yaml\n" +
			"  catalog template lantern.yaml -o svg > lantern.svg",
		Args:      cobra.RangeArgs(1, 2),
		ValidArgs: render.TemplateTypes(),
		RunE:      o.run,
	}
	flags := cmd.Flags()
	o.output.addFlags(cmd)
	flags.Lookup("output").Usage = "output format: json or yaml for the catalog, mermaid or svg for the graph"
	addMigrateFlag(cmd, &o.migrate, render.NoMigration)
	o.read.addFlags(flags)
	o.read.addImageRefFlag(flags)
	flagenv.Describe(flags, envPrefix)
	return cmd
}

func (o *templateOptions) run(cmd *cobra.Command, args []string) (err error) {
	kind, name := "", args[len(args)-1]
	if len(args) == 2 {
		kind = args[0]
	}
	text := cmd.InOrStdin()
	if name != "-" {
		file, err := os.Open(name)
		if err != nil {
			return fmt.Errorf("reading the template: %w", err)
		}
		defer file.Close() //nolint:errcheck // nothing was written
		text = file
	}
	return o.read.with(cmd, func(opener *render.Opener) error { return o.render(cmd, opener, kind, name, text) })
}

var errDirectoryOfGraph = errors.New("--to is for catalogs; a graph is printed")

func (o *templateOptions) render(cmd *cobra.Command, opener *render.Opener, kind, name string, text io.Reader) error {
	source, err := opener.Template(cmd.Context(), kind, name, text)
	if err != nil {
		return err //nolint:wrapcheck // names the template
	}
	if source, err = render.Migrated(source, o.migrate); err != nil {
		return fmt.Errorf("--migrate-level: %w", err)
	}
	if !slices.Contains(graph.Forms(), o.output.format.value) {
		return o.output.write(cmd, o.read.quiet, "Rendering "+name, source)
	}
	if o.output.to != "" {
		return errDirectoryOfGraph
	}
	drawing, err := graph.Draw(cmd.Context(), o.output.format.value, source)
	if err != nil {
		return fmt.Errorf("drawing: %w", err)
	}
	if _, err := io.WriteString(document.Writer(cmd), drawing); err != nil {
		return fmt.Errorf("printing: %w", err)
	}
	return nil
}
