package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/chandlery/chandlery/bundles"
	"github.com/chandlery/chandlery/bundles/authoring/render"
	"github.com/chandlery/chandlery/bundles/outline"
	"github.com/chandlery/chandlery/cmd/internal/inspect"
	"github.com/chandlery/chandlery/cmd/internal/progress"
)

// inspected configures the commands validate and diff for this program.
func inspected() inspect.Program {
	return inspect.Program{
		Name: "catalog", EnvPrefix: envPrefix, Sources: "A SOURCE is the directory or the image of a catalog. Write oci:IMAGE if a directory has the same name as the image.",
		Image: "registry.example.org/catalog:v1", Reader: &inspectReader{},
	}
}

// inspectReader reads catalogs for commands that several programs share.
type inspectReader struct{ read readOptions }

// AddFlags adds the flags for reading catalogs.
func (r *inspectReader) AddFlags(cmd *cobra.Command) { r.read.addFlags(cmd.Flags()) }

// Count reads a catalog and returns the numbers of its objects.
func (r *inspectReader) Count(ctx context.Context, terminal io.Writer, argument string) (inspect.Counts, error) {
	catalog, err := r.Outline(ctx, terminal, argument, outline.Options{})
	if err != nil {
		return inspect.Counts{}, err
	}
	counts := inspect.Counts{Packages: len(catalog.Packages)}
	for _, p := range catalog.Packages {
		counts.Channels += len(p.Channels)
		counts.Bundles += len(p.Bundles())
	}
	return counts, nil
}

var errNotCatalog = errors.New("is a bundle, not a catalog")

// Outline reads a catalog and returns its outline.
func (r *inspectReader) Outline(ctx context.Context, terminal io.Writer, argument string, o outline.Options) (catalog *outline.Catalog, err error) {
	client, err := r.read.pulling.Client(agent())
	if err != nil {
		return nil, err //nolint:wrapcheck // names the flag
	}
	opener := &render.Opener{Client: client}
	defer func() { err = errors.Join(err, opener.Close()) }()
	done := progress.Start(terminal, r.read.quiet, "Reading "+argument)
	defer done()
	whole, err := open(ctx, opener, argument)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, whole.Close()) }()
	catalog, err = outline.FromSource(ctx, whole.Reader(), o)
	if err == nil && len(catalog.Packages) == 0 {
		return nil, bundles.Problems{{File: argument, Message: "the catalog directory holds no package", Remedy: "check the path"}}
	}
	return catalog, err //nolint:wrapcheck // names file and line
}

// open opens a catalog. Its problems name files relative to its directory.
func open(ctx context.Context, opener *render.Opener, argument string) (*render.Directory, error) {
	if render.IsDirectory(argument) && !render.IsBundle(argument) {
		return render.OpenDirectory(ctx, os.DirFS(argument)) //nolint:wrapcheck // names file and line
	}
	source, err := opener.Open(ctx, argument)
	if err != nil {
		return nil, err //nolint:wrapcheck // names the reference
	}
	whole, ok := source.(*render.Directory)
	if !ok {
		return nil, fmt.Errorf("%s %w", argument, errNotCatalog)
	}
	return whole, nil
}

// Path returns the path of a catalog; empty for an image.
func (*inspectReader) Path(argument string) string {
	if strings.HasPrefix(argument, render.ImagePrefix) {
		return ""
	}
	if _, err := os.Stat(argument); err == nil || !strings.Contains(argument, "/") {
		return argument
	}
	return ""
}
