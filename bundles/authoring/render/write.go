package render

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"runtime"
	"slices"

	"github.com/operator-framework/operator-registry/alpha/declcfg"
	"github.com/operator-framework/operator-registry/alpha/property"
	"golang.org/x/sync/errgroup"
)

// Format is the format of a catalog.
type Format string

// The formats of file-based catalogs.
const (
	JSON Format = "json"
	YAML Format = "yaml"
)

// Formats returns the names of all formats.
func Formats() []string { return []string{string(JSON), string(YAML)} }

// Encode returns the text of objects.
func (f Format) Encode(cfg *declcfg.DeclarativeConfig) ([]byte, error) {
	var (
		text bytes.Buffer
		err  error
	)
	if f == YAML {
		err = declcfg.WriteYAML(*cfg, &text)
	} else {
		err = declcfg.WriteJSON(*cfg, &text)
	}
	if err != nil {
		return nil, fmt.Errorf("encoding the catalog: %w", err)
	}
	return text.Bytes(), nil
}

// Write writes a source to out. Packages are in byte order of their names. A package has the
// package object, channels, bundles and other objects, each in byte order of their names. Objects
// without a package come last. A few packages are decoded and encoded in parallel.
func Write(ctx context.Context, out io.Writer, format Format, source Source) error {
	return EachText(ctx, format, source, func(_ string, text []byte) error {
		if _, err := out.Write(text); err != nil {
			return fmt.Errorf("writing the catalog: %w", err)
		}
		return nil
	})
}

// EachText calls visit with the text of each package, in the order of [Write].
func EachText(ctx context.Context, format Format, source Source, visit func(name string, text []byte) error) error {
	type encoded struct {
		name string
		text chan []byte
	}
	group, ctx := errgroup.WithContext(ctx)
	workers := runtime.GOMAXPROCS(0)
	queue := make(chan encoded, workers)
	group.Go(func() error {
		defer close(queue)
		// The queue bounds the number of packages in progress.
		for _, name := range inOrder(source.Packages()) {
			next := encoded{name, make(chan []byte, 1)}
			select {
			case queue <- next:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
			group.Go(func() error {
				text, err := encode(ctx, format, source, name)
				if err == nil {
					next.text <- text
				}
				return err
			})
		}
		return nil
	})
	group.Go(func() error {
		for next := range queue {
			select {
			case text := <-next.text:
				if err := visit(next.name, text); err != nil {
					return err
				}
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		return nil
	})
	return group.Wait()
}

func encode(ctx context.Context, format Format, source Source, name string) ([]byte, error) {
	cfg, err := source.Package(ctx, name)
	if err != nil {
		return nil, err
	}
	arrange(cfg)
	return format.Encode(cfg)
}

// inOrder moves the empty name, of objects without a package, to the end.
func inOrder(names []string) []string {
	if i := slices.Index(names, ""); i >= 0 {
		return append(slices.Delete(slices.Clone(names), i, i+1), "")
	}
	return names
}

// arrange sorts everything whose order has no meaning, as opm does: related images by reference,
// properties with manifests after the others, and objects by name.
func arrange(cfg *declcfg.DeclarativeConfig) {
	byName := func(a, b *declcfg.Bundle) int { return cmp.Compare(a.Name, b.Name) }
	slices.SortStableFunc(cfg.Bundles, func(a, b declcfg.Bundle) int { return byName(&a, &b) })
	slices.SortStableFunc(cfg.Channels, func(a, b declcfg.Channel) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortStableFunc(cfg.Others, func(a, b declcfg.Meta) int {
		return cmp.Or(cmp.Compare(a.Schema, b.Schema), cmp.Compare(a.Name, b.Name), bytes.Compare(a.Blob, b.Blob))
	})
	for i := range cfg.Bundles {
		b := &cfg.Bundles[i]
		slices.SortStableFunc(b.RelatedImages, func(x, y declcfg.RelatedImage) int {
			return cmp.Or(cmp.Compare(x.Image, y.Image), cmp.Compare(x.Name, y.Name))
		})
		slices.SortStableFunc(b.Properties, func(x, y property.Property) int { return cmp.Compare(weight(x), weight(y)) })
	}
}

// weight returns one for properties with manifests, which are large, and zero for others.
func weight(p property.Property) int {
	if p.Type == property.TypeBundleObject || p.Type == property.TypeCSVMetadata {
		return 1
	}
	return 0
}
