package images

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

var errNoTag = errors.New("name at least one tag")

// Push writes an image and its SBOMs to a repository and points the tags to the image.
func (i Image) Push(ctx context.Context, repository name.Repository, tags []string, options ...remote.Option) error {
	if len(tags) == 0 {
		return fmt.Errorf("pushing %s: %w", i.Name, errNoTag)
	}
	options = append([]remote.Option{remote.WithContext(ctx)}, options...)
	first := repository.Tag(tags[0])
	if err := remote.WriteIndex(first, i.Index, options...); err != nil {
		return fmt.Errorf("pushing %s: %w", first, err)
	}
	for _, tag := range tags[1:] {
		if err := remote.Tag(repository.Tag(tag), i.Index, options...); err != nil {
			return fmt.Errorf("tagging %s: %w", repository.Tag(tag), err)
		}
	}
	for _, p := range i.Platforms {
		digest, err := p.SBOM.Digest()
		if err != nil {
			return fmt.Errorf("reading the digest of a list: %w", err)
		}
		if err := remote.Write(repository.Digest(digest.String()), p.SBOM, options...); err != nil {
			return fmt.Errorf("pushing the list of what %s for %s is made of: %w", first, p.Platform, err)
		}
	}
	return nil
}

// WriteLayout writes images to a new OCI layout, each with its name and each of the tags. It
// replaces an existing layout.
func WriteLayout(dir string, all []Image, tags []string) error {
	if len(tags) == 0 {
		return fmt.Errorf("writing the layout %s: %w", dir, errNoTag)
	}
	path, err := freshLayout(dir)
	if err != nil {
		return err
	}
	for _, image := range all {
		for _, tag := range tags {
			if err := path.AppendIndex(image.Index, layout.WithAnnotations(map[string]string{
				// containerd reads the first as the whole name. Other tools read the second.
				"io.containerd.image.name":          "docker.io/" + image.Name + ":" + tag,
				"org.opencontainers.image.ref.name": image.Name + ":" + tag,
			})); err != nil {
				return fmt.Errorf("writing %s to the layout %s: %w", image.Name, dir, err)
			}
		}
		for _, p := range image.Platforms {
			if err := path.AppendImage(p.SBOM); err != nil {
				return fmt.Errorf("writing the list of what %s for %s is made of to the layout %s: %w", image.Name, p.Platform, dir, err)
			}
		}
	}
	return nil
}

// freshLayout makes a folder an empty layout. It returns an error for a folder that holds other
// files, because a mistyped path must not delete them.
func freshLayout(dir string) (layout.Path, error) {
	names, err := os.ReadDir(dir)
	if err != nil && !os.IsNotExist(err) {
		return "", fmt.Errorf("looking into %s: %w", dir, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "oci-layout")); len(names) > 0 && err != nil {
		return "", fmt.Errorf("%s holds files and is no OCI layout; name another folder", dir)
	}
	for _, part := range []string{"oci-layout", "index.json", "blobs"} {
		if err := os.RemoveAll(filepath.Join(dir, part)); err != nil {
			return "", fmt.Errorf("emptying the layout %s: %w", dir, err)
		}
	}
	path, err := layout.Write(dir, empty.Index)
	if err != nil {
		return "", fmt.Errorf("making the layout %s: %w", dir, err)
	}
	return path, nil
}

// CompressedSize returns the number of bytes that a pull of the image's layers transfers.
func CompressedSize(image v1.Image) (int64, error) {
	layers, err := image.Layers()
	if err != nil {
		return 0, fmt.Errorf("reading the layers: %w", err)
	}
	var sum int64
	for _, l := range layers {
		size, err := l.Size()
		if err != nil {
			return 0, fmt.Errorf("reading the size of a layer: %w", err)
		}
		sum += size
	}
	return sum, nil
}
