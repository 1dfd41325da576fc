package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/chandlery/chandlery/cmd/internal/flagenv"
	"github.com/chandlery/chandlery/server/source"
)

func newValidateCommand() *cobra.Command {
	var allowEmpty bool
	cmd := &cobra.Command{
		Use:   "validate DIR",
		Short: "Check the catalog in a directory and name everything that is wrong with it",
		Args:  oneDirectory,
		RunE: func(cmd *cobra.Command, args []string) error {
			dir := source.Dir{Path: args[0], AllowEmpty: allowEmpty}
			x, err := dir.Load(cmd.Context())
			if err != nil {
				return fmt.Errorf("validating: %w", err)
			}
			stats := x.Stats()
			fmt.Fprintf(cmd.OutOrStdout(), "%s: %d packages, %d channels, %d bundles, no problems\n",
				args[0], stats.Packages, stats.Channels, stats.Bundles)
			return nil
		},
	}
	cmd.Flags().BoolVar(&allowEmpty, "allow-empty", false, "accept a directory without any package")
	flagenv.Describe(cmd.Flags(), envPrefix)
	return cmd
}

var errOneDirectory = errors.New("name one directory that holds a catalog")

// oneDirectory accepts exactly one argument.
func oneDirectory(cmd *cobra.Command, args []string) error {
	if len(args) == 1 && args[0] != "" {
		return nil
	}
	return fmt.Errorf("%w: %s; see '%s --help'", errOneDirectory, cmd.UseLine(), cmd.CommandPath())
}
