package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/chandlery/chandlery/bundles"
	"github.com/chandlery/chandlery/bundles/authoring/render"
	"github.com/chandlery/chandlery/cmd/internal/document"
	"github.com/chandlery/chandlery/cmd/internal/progress"
)

// catalogOutput is the destination of commands that create catalogs.
type catalogOutput struct {
	format formatFlag
	to     string
}

func (o *catalogOutput) addFlags(cmd *cobra.Command) {
	o.format.addFlag(cmd, string(render.JSON), "format of the catalog")
	cmd.Flags().StringVar(&o.to, "to", "",
		"new directory for the catalog, one file for each package; default: print the catalog")
	completeDir(cmd, "to")
}

// write writes a catalog to the destination that the flags name.
func (o *catalogOutput) write(cmd *cobra.Command, quiet bool, what string, source render.Source) error {
	format, err := o.format.format()
	if err != nil {
		return err
	}
	done := progress.Start(cmd.ErrOrStderr(), quiet, what)
	if o.to == "" {
		defer done()
		return render.Write(cmd.Context(), document.Writer(cmd), format, source) //nolint:wrapcheck // names the package
	}
	err = render.WriteDirectory(cmd.Context(), o.to, format, source)
	done()
	if err != nil {
		return err //nolint:wrapcheck // names the file
	}
	fmt.Fprintf(cmd.OutOrStdout(), "created %s: %s\n", o.to, bundles.Count(packages(source), "package"))
	return nil
}

// packages returns the number of packages in a source.
func packages(source render.Source) int {
	count := 0
	for _, name := range source.Packages() {
		if name != "" {
			count++
		}
	}
	return count
}
