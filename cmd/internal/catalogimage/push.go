package catalogimage

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/chandlery/chandlery/bundles"
	"github.com/chandlery/chandlery/bundles/image"
)

var errNoTag = errors.New("is a reference by digest; name a tag to push to")

// Push writes the image and its SBOMs to a registry and returns the digest. It sets the tag after
// everything else has been written.
func (b *Built) Push(ctx context.Context, client *image.Client, reference string) (v1.Hash, error) {
	ref, err := client.Reference(reference)
	if err != nil {
		return v1.Hash{}, err //nolint:wrapcheck // names the image
	}
	tag, ok := ref.(name.Tag)
	if !ok {
		return v1.Hash{}, fmt.Errorf("%s %w", reference, errNoTag)
	}
	options, err := client.Remote(ctx, tag)
	if err != nil {
		return v1.Hash{}, err //nolint:wrapcheck // says what it does
	}
	digest, err := b.Index.Digest()
	if err != nil {
		return v1.Hash{}, fmt.Errorf("reading the digest: %w", err)
	}
	if err := remote.WriteIndex(tag.Digest(digest.String()), b.Index, options...); err != nil {
		return v1.Hash{}, fmt.Errorf("pushing: %w", client.Describe(ref, err))
	}
	for _, contents := range b.Contents {
		of, err := contents.Digest()
		if err != nil {
			return v1.Hash{}, fmt.Errorf("reading the digest of a list: %w", err)
		}
		if err := remote.Write(tag.Digest(of.String()), contents, options...); err != nil {
			return v1.Hash{}, fmt.Errorf("pushing the list of bundles: %w", client.Describe(ref, err))
		}
	}
	if err := remote.Tag(tag, b.Index, options...); err != nil {
		return v1.Hash{}, fmt.Errorf("tagging: %w", client.Describe(ref, err))
	}
	return digest, nil
}

// WriteLayout writes the image and its SBOMs to an OCI layout in a directory that must not exist or
// must be empty.
func (b *Built) WriteLayout(dir, reference string) error {
	if entries, err := os.ReadDir(dir); err == nil && len(entries) > 0 {
		return bundles.Problems{{File: dir, Message: "is not an empty directory", Remedy: "name one that does not exist yet, or remove it"}}
	}
	path, err := layout.Write(dir, empty.Index)
	if err != nil {
		return fmt.Errorf("creating the layout %s: %w", dir, err)
	}
	annotations := map[string]string{"org.opencontainers.image.ref.name": reference}
	if err := path.AppendIndex(b.Index, layout.WithAnnotations(annotations)); err != nil {
		return fmt.Errorf("writing the layout %s: %w", dir, err)
	}
	for _, contents := range b.Contents {
		if err := path.AppendImage(contents); err != nil {
			return fmt.Errorf("writing the layout %s: %w", dir, err)
		}
	}
	return nil
}

var errNoPlatform = errors.New("the base has no image for the platform")

// Base returns the images of a base for platforms; for all platforms of the base if none is named.
func Base(ctx context.Context, client *image.Client, reference string, platforms []v1.Platform) ([]PlatformImage, error) {
	ref, options, err := client.Locate(ctx, reference)
	if err != nil {
		return nil, err //nolint:wrapcheck // names the image
	}
	found, err := remote.Get(ref, options...)
	if err != nil {
		return nil, fmt.Errorf("reading the base: %w", client.Describe(ref, err))
	}
	all, err := imagesOf(found)
	if err != nil {
		return nil, fmt.Errorf("reading the base: %w", client.Describe(ref, err))
	}
	if len(platforms) == 0 {
		return all, nil
	}
	var wanted []PlatformImage
	for _, platform := range platforms {
		i := slices.IndexFunc(all, func(p PlatformImage) bool { return p.Platform.Satisfies(platform) })
		if i < 0 {
			return nil, fmt.Errorf("%s: %w %s", reference, errNoPlatform, platform)
		}
		wanted = append(wanted, all[i])
	}
	return wanted, nil
}

// imagesOf returns the images of a reference.
func imagesOf(found *remote.Descriptor) ([]PlatformImage, error) {
	if !found.MediaType.IsIndex() {
		one, err := found.Image()
		if err != nil {
			return nil, err
		}
		config, err := one.ConfigFile()
		if err != nil {
			return nil, err
		}
		return []PlatformImage{{*config.Platform(), one}}, nil
	}
	index, err := found.ImageIndex()
	if err != nil {
		return nil, err
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		return nil, err
	}
	var all []PlatformImage
	for i := range manifest.Manifests {
		d := &manifest.Manifests[i]
		// Other manifests, such as attestations, have the platform unknown or none.
		if !d.MediaType.IsImage() || d.Platform == nil || d.Platform.OS == "unknown" {
			continue
		}
		one, err := index.Image(d.Digest)
		if err != nil {
			return nil, err
		}
		all = append(all, PlatformImage{*d.Platform, one})
	}
	return all, nil
}
