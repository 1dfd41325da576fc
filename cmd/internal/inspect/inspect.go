// Package inspect holds the commands that look into catalogs and that several programs have:
// validate and diff.
package inspect

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/chandlery/chandlery/bundles/outline"
	"github.com/chandlery/chandlery/cmd/internal/exitcode"
)

// Program is what a program has of its own.
type Program struct {
	// Name is that of the program; EnvPrefix begins the names of the variables that stand in for
	// flags.
	Name, EnvPrefix string
	// Sources says in a sentence what the arguments may be.
	Sources string
	// Image is how an argument names an image, as oci:registry.example.org/catalog:v1.
	Image string
	// Reader reads catalogs.
	Reader Reader
}

// Reader is how a program reads catalogs. What is wrong with a catalog is
// [github.com/chandlery/chandlery/bundles.Problems], which name files below the catalog's directory.
type Reader interface { //nolint:interfacebloat // one for each thing that commands need
	// AddFlags adds the flags that say how catalogs are read.
	AddFlags(cmd *cobra.Command)
	// Count reads a catalog and counts what it holds.
	Count(ctx context.Context, terminal io.Writer, argument string) (Counts, error)
	// Outline reads the outline of a catalog.
	Outline(ctx context.Context, terminal io.Writer, argument string, o outline.Options) (*outline.Catalog, error)
	// Path returns the file or directory that an argument names; empty for an image.
	Path(argument string) string
}

// Counts are how much a catalog holds.
type Counts struct{ Packages, Channels, Bundles int }

// ErrNoPackage says that a catalog lacks a package.
var ErrNoPackage = errors.New("the catalog has no such package")

// ErrArguments says that a command was given other arguments than it takes.
var ErrArguments = errors.New("the arguments do not fit")

// Arguments accepts a number of arguments of which none is empty.
func Arguments(cmd *cobra.Command, args []string, least, most int) error {
	fits := len(args) >= least && len(args) <= most
	for _, argument := range args {
		fits = fits && argument != ""
	}
	if fits {
		return nil
	}
	return fmt.Errorf("%w: %s; see '%s --help'", ErrArguments, cmd.UseLine(), cmd.CommandPath())
}

// TroubledFlags is the flag error function of commands whose exit code says what they found.
func TroubledFlags(cmd *cobra.Command, err error) error {
	return exitcode.Troubled(fmt.Errorf("%w; see '%s --help'", err, cmd.CommandPath()))
}
