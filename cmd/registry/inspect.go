package main

import (
	"context"
	"io"
	"log/slog"
	"strings"

	"github.com/spf13/cobra"

	"github.com/chandlery/chandlery/bundles"
	"github.com/chandlery/chandlery/bundles/outline"
	"github.com/chandlery/chandlery/cmd/internal/inspect"
	"github.com/chandlery/chandlery/server/source"
)

// inspected configures the commands validate and diff for this program.
func inspected() inspect.Program {
	return inspect.Program{
		Name: "registry", EnvPrefix: envPrefix, Sources: sourceHelp,
		Warnings: "For a ConfigMap, the list includes warnings. A ConfigMap with warnings can still be served.",
		Image:    imagePrefix + "registry.example.org/catalog:v1", Reader: &inspectReader{},
	}
}

// inspectReader reads catalogs for commands that several programs share.
type inspectReader struct{ read readOptions }

// AddFlags adds the flags for reading catalogs.
func (r *inspectReader) AddFlags(cmd *cobra.Command) { r.read.addFlags(cmd) }

// Count reads a catalog and returns the numbers of its objects, and its warnings.
func (r *inspectReader) Count(ctx context.Context, terminal io.Writer, argument string) (inspect.Counts, error) {
	x, err := r.read.index(ctx, terminal, argument)
	if err != nil {
		return inspect.Counts{}, err
	}
	warnings, err := r.warnings(argument)
	stats := x.Stats()
	return inspect.Counts{Packages: stats.Packages, Channels: stats.Channels, Bundles: stats.Bundles, Warnings: warnings}, err
}

// warnings returns the problems of a catalog that do not prevent serving. Only ConfigMaps can have some.
func (r *inspectReader) warnings(argument string) (bundles.Problems, error) {
	from, err := r.read.source.open(argument, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	if configMap, is := from.(source.ConfigMap); is {
		return configMap.Warnings()
	}
	return nil, nil
}

// Outline reads a catalog and returns its outline.
func (r *inspectReader) Outline(ctx context.Context, terminal io.Writer, argument string, o outline.Options) (*outline.Catalog, error) {
	return r.read.outline(ctx, terminal, argument, o)
}

// Path returns the path of a catalog; empty for an image.
func (*inspectReader) Path(argument string) string {
	if strings.HasPrefix(argument, imagePrefix) {
		return ""
	}
	return strings.TrimPrefix(argument, configMapPrefix)
}
