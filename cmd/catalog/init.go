package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/chandlery/chandlery/bundles/authoring/render"
	"github.com/chandlery/chandlery/cmd/internal/flagenv"
)

// initOptions are the flags of "catalog init".
type initOptions struct {
	channel, description, icon string
	format                     formatFlag
}

func newInitCommand() *cobra.Command {
	var o initOptions
	cmd := &cobra.Command{
		Use: "init PACKAGE", Short: "Print the olm.package object of a new package",
		Long: "Print the olm.package object of a new package, or write it to DIR/PACKAGE/catalog.yaml with --catalog DIR.",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd, args[0]) },
	}
	flagenv.Describe(cmd.Flags(), envPrefix)
	return cmd
}

func (o *initOptions) run(*cobra.Command, string) error { return fmt.Errorf("%s", render.JSON) }
