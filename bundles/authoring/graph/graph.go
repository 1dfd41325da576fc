// Package graph draws the upgrade graphs of rendered catalogs.
package graph

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/chandlery/chandlery/bundles/authoring/render"
	"github.com/chandlery/chandlery/bundles/drawing"
	"github.com/chandlery/chandlery/bundles/fbc"
	"github.com/chandlery/chandlery/bundles/outline"
)

// The forms of a graph.
const (
	Mermaid = "mermaid"
	SVG     = "svg"
)

// Forms returns the names of all forms.
func Forms() []string { return []string{Mermaid, SVG} }

var errPackages = errors.New("a graph shows one package")

// Draw returns the upgrade graph of the only package of a source.
func Draw(ctx context.Context, form string, source render.Source) (string, error) {
	catalog, err := Outline(ctx, source)
	if err != nil {
		return "", err
	}
	if len(catalog.Packages) != 1 {
		return "", fmt.Errorf("%w, found %d", errPackages, len(catalog.Packages))
	}
	if form == SVG {
		return drawing.SVG(catalog.Packages[0]), nil
	}
	return drawing.Mermaid(catalog.Packages[0]), nil
}

// Outline returns the outline of a source, which must be a valid catalog.
func Outline(ctx context.Context, source render.Source) (*outline.Catalog, error) {
	var text bytes.Buffer
	w := zip.NewWriter(&text)
	file, err := w.CreateHeader(&zip.FileHeader{Name: "catalog.json", Method: zip.Store})
	if err == nil {
		err = render.Write(ctx, file, render.JSON, source)
	}
	if err := errors.Join(err, w.Close()); err != nil {
		return nil, err
	}
	root, err := zip.NewReader(bytes.NewReader(text.Bytes()), int64(text.Len()))
	if err != nil {
		return nil, fmt.Errorf("reading the catalog again: %w", err)
	}
	reader, err := fbc.Open(ctx, root, fbc.Options{})
	if err != nil {
		return nil, fmt.Errorf("reading the catalog again: %w", err)
	}
	defer reader.Close() //nolint:errcheck // nothing was written
	return outline.FromSource(ctx, reader, outline.Options{})
}
