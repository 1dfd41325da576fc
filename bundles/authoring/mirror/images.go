// Package mirror lists the images that a catalog needs, in the input formats of mirroring tools,
// and checks which of them a mirror lacks.
package mirror

import (
	"cmp"
	"context"
	"slices"

	"github.com/chandlery/chandlery/bundles/authoring/render"
)

// Kind is the purpose of an image.
type Kind string

// The kinds of images.
const (
	Catalog Kind = "catalog"
	Bundle  Kind = "bundle"
	Related Kind = "related"
)

// Image is an image that a catalog needs.
type Image struct {
	// Reference is the reference in the catalog.
	Reference string `json:"image"`
	// Kinds are the purposes of the image, in byte order.
	Kinds []Kind `json:"kinds"`
	// Bundles are the bundles that need the image, as PACKAGE/BUNDLE, in byte order.
	Bundles []string `json:"bundles,omitempty"`
}

// List returns the images that a catalog needs, each once, in byte order: the images of bundles,
// their related images, and the image of the catalog itself unless it is empty.
func List(ctx context.Context, catalog string, source render.Source) ([]Image, error) {
	found := map[string]*Image{}
	add := func(reference string, kind Kind, bundle string) {
		if reference == "" {
			return
		}
		image := found[reference]
		if image == nil {
			image = &Image{Reference: reference}
			found[reference] = image
		}
		if !slices.Contains(image.Kinds, kind) {
			image.Kinds = append(image.Kinds, kind)
		}
		if bundle != "" && !slices.Contains(image.Bundles, bundle) {
			image.Bundles = append(image.Bundles, bundle)
		}
	}
	add(catalog, Catalog, "")
	for _, name := range source.Packages() {
		cfg, err := source.Package(ctx, name)
		if err != nil {
			return nil, err //nolint:wrapcheck // names the package
		}
		for i := range cfg.Bundles {
			b := &cfg.Bundles[i]
			named := b.Package + "/" + b.Name
			add(b.Image, Bundle, named)
			for _, related := range b.RelatedImages {
				if related.Image != b.Image {
					add(related.Image, Related, named)
				}
			}
		}
	}
	all := make([]Image, 0, len(found))
	for _, image := range found {
		slices.Sort(image.Kinds)
		slices.Sort(image.Bundles)
		all = append(all, *image)
	}
	slices.SortFunc(all, func(a, b Image) int { return cmp.Compare(a.Reference, b.Reference) })
	return all, nil
}
