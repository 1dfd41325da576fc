// Package inspect holds the commands that inspect catalogs and that several programs have: validate and diff.
package inspect

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/chandlery/chandlery/bundles"
	"github.com/chandlery/chandlery/bundles/outline"
	"github.com/chandlery/chandlery/cmd/internal/exitcode"
	"github.com/chandlery/chandlery/cmd/internal/flagenv"
)

// Program holds the differences between programs.
type Program struct {
	// Name is the name of the program. EnvPrefix is the prefix of the variables that set flags.
	Name, EnvPrefix string
	// Sources is a sentence about the possible arguments.
	Sources string
	// Warnings is a paragraph about the catalogs that can have warnings; empty if none can.
	Warnings string
	// Image is an example of an argument that names an image, as oci:registry.example.org/catalog:v1.
	Image string
	// Reader reads catalogs.
	Reader Reader
}

// Reader reads the catalogs of a program. Problems of a catalog are
// [github.com/chandlery/chandlery/bundles.Problems], with files relative to the catalog's
// directory.
type Reader interface { //nolint:interfacebloat // one for each thing that commands need
	// AddFlags adds the flags for reading catalogs.
	AddFlags(cmd *cobra.Command)
	// Count reads a catalog and returns the numbers of its objects, and its warnings.
	Count(ctx context.Context, terminal io.Writer, argument string) (Counts, error)
	// Outline reads a catalog and returns its outline.
	Outline(ctx context.Context, terminal io.Writer, argument string, o outline.Options) (*outline.Catalog, error)
	// Path returns the file or directory that an argument names; empty for an image.
	Path(argument string) string
}

// Counts are the numbers of objects in a valid catalog.
type Counts struct {
	Packages, Channels, Bundles int
	// Warnings are the problems that do not prevent serving the catalog.
	Warnings bundles.Problems
}

// ErrNoPackage means that a catalog lacks a package.
var ErrNoPackage = errors.New("the catalog has no such package")

// ErrArguments means that a command does not accept its arguments.
var ErrArguments = errors.New("wrong number of arguments")

// Arguments returns an error unless the number of arguments is between least and most and none is empty.
func Arguments(_ *cobra.Command, args []string, least, most int) error {
	fits := len(args) >= least && len(args) <= most
	for _, argument := range args {
		fits = fits && argument != ""
	}
	if fits {
		return nil
	}
	return ErrArguments
}

// TroubledFlags is the flag error function of commands whose exit code reports what they found.
func TroubledFlags(cmd *cobra.Command, err error) error {
	return exitcode.Troubled(fmt.Errorf("%w; see '%s --help'", flagenv.Explain(err), cmd.CommandPath()))
}
