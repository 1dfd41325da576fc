package main

import (
	"context"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/chandlery/chandlery/bundles/outline"
	"github.com/chandlery/chandlery/cmd/internal/inspect"
)

// inspected is what the commands validate and diff need to know.
func inspected() inspect.Program {
	return inspect.Program{
		Name: "registry", EnvPrefix: envPrefix, Sources: sourceHelp,
		Image: imagePrefix + "registry.example.org/catalog:v1", Reader: &inspectReader{},
	}
}

// inspectReader reads catalogs for commands that other programs have as well.
type inspectReader struct{ reading reading }

// AddFlags adds the flags that say how a catalog is read.
func (r *inspectReader) AddFlags(cmd *cobra.Command) { r.reading.addFlags(cmd) }

// Count reads a catalog.
func (r *inspectReader) Count(ctx context.Context, terminal io.Writer, argument string) (inspect.Counts, error) {
	x, err := r.reading.index(ctx, terminal, argument)
	if err != nil {
		return inspect.Counts{}, err
	}
	stats := x.Stats()
	return inspect.Counts{Packages: stats.Packages, Channels: stats.Channels, Bundles: stats.Bundles}, nil
}

// Outline reads the outline of a catalog.
func (r *inspectReader) Outline(ctx context.Context, terminal io.Writer, argument string, o outline.Options) (*outline.Catalog, error) {
	return r.reading.outline(ctx, terminal, argument, o)
}

// Path returns the path of a catalog that is not an image.
func (*inspectReader) Path(argument string) string {
	if strings.HasPrefix(argument, imagePrefix) {
		return ""
	}
	return strings.TrimPrefix(argument, configMapPrefix)
}
