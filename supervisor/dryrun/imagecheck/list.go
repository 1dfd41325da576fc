// Package imagecheck lists the images that the steps of a dry run need, and asks the sources of images for them.
package imagecheck

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/chandlery/chandlery/supervisor/dryrun"
	"github.com/chandlery/chandlery/supervisor/resolution"
)

// Catalogs reads the images that catalogs name for bundles, in the order of the bundles.
type Catalogs interface {
	Images(ctx context.Context, catalog resolution.CatalogKey, bundles []dryrun.BundleKey) ([]dryrun.BundleImages, error)
}

// List returns the images that the catalogs name for steps.
func List(ctx context.Context, catalogs Catalogs, steps []dryrun.Step) ([]dryrun.Image, error) {
	found := newList()
	byCatalog := map[resolution.CatalogKey][]dryrun.BundleKey{}
	for i := range steps {
		s := &steps[i]
		found.add(s.Catalog, s.Bundle, dryrun.BundleImage, s.Image)
		key := catalogKey(s.Catalog)
		byCatalog[key] = append(byCatalog[key], dryrun.BundleKey{Package: s.Package, Channel: s.Channel, Name: s.Bundle})
	}
	for key, bundles := range byCatalog {
		images, err := catalogs.Images(ctx, key, bundles)
		if err != nil {
			return nil, err //nolint:wrapcheck // names the catalog
		}
		for i := range images {
			found.addNamed(key.String(), bundles[i].Name, images[i])
		}
	}
	return found.sorted(), nil
}

// catalogKey returns the catalog of a step.
func catalogKey(name string) resolution.CatalogKey {
	namespace, name, _ := strings.Cut(name, "/")
	return resolution.CatalogKey{Namespace: namespace, Name: name}
}

// imageKey identifies an image and the settings for it.
type imageKey struct{ reference, catalog string }

// list is a set of images.
type list struct{ images map[imageKey]*dryrun.Image }

func newList(images ...dryrun.Image) *list {
	l := &list{images: map[imageKey]*dryrun.Image{}}
	for i := range images {
		l.images[imageKey{images[i].Reference, images[i].Catalog}] = &images[i]
	}
	return l
}

// add adds a purpose of images.
func (l *list) add(catalog, bundle string, kind dryrun.ImageKind, references ...string) {
	for _, reference := range references {
		if reference == "" {
			continue
		}
		key := imageKey{reference, catalog}
		image := l.images[key]
		if image == nil {
			image = &dryrun.Image{Reference: reference, Catalog: catalog}
			l.images[key] = image
		}
		image.Kinds = inserted(image.Kinds, kind)
		image.Bundles = inserted(image.Bundles, bundle)
	}
}

// addNamed adds what a bundle names. A catalog may name the image of the bundle among the related images.
func (l *list) addNamed(catalog, bundle string, named dryrun.BundleImages) {
	l.add(catalog, bundle, dryrun.OperatorImage, named.OfDeployments...)
	for _, reference := range named.Related {
		if image := l.images[imageKey{reference, catalog}]; image == nil || !slices.Contains(image.Bundles, bundle) {
			l.add(catalog, bundle, dryrun.RelatedImage, reference)
		}
	}
}

// sorted returns the images by reference and catalog.
func (l *list) sorted() []dryrun.Image {
	out := make([]dryrun.Image, 0, len(l.images))
	for _, image := range slices.SortedFunc(maps.Values(l.images), func(a, b *dryrun.Image) int {
		return cmp.Or(cmp.Compare(a.Reference, b.Reference), cmp.Compare(a.Catalog, b.Catalog))
	}) {
		out = append(out, *image)
	}
	return out
}

// inserted returns a sorted list with a value.
func inserted[T cmp.Ordered](values []T, value T) []T {
	i, found := slices.BinarySearch(values, value)
	if found {
		return values
	}
	return slices.Insert(slices.Clone(values), i, value)
}
