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

// Push writes an image and the lists of what it is made of to a repository, and
// lets the tags point to it.
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

// WriteLayout writes images to a new OCI layout, each under its name and each of
// the tags. What was in the folder is replaced if it was a layout.
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
				// containerd takes the first for the whole name, others the second.
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

// freshLayout makes a folder an empty layout. Other folders than layouts are left
// alone: a mistyped path must not cost anybody their files.
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

// CompressedSize is how much is transferred of an image, without what describes it.
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
