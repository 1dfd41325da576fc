package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// push pushes the content of an OCI layout or an archive to the registry of the bed.
func (b bed) push(ctx context.Context, out io.Writer, path, repositoryTag string) error {
	var s state

	err := b.Ready(&s)
	if err != nil {
		return err
	}

	reference, err := name.ParseReference(s.Registry+"/"+repositoryTag, name.Insecure)
	if err != nil {
		return fmt.Errorf("push %s: %w", path, err)
	}

	content, err := open(path)
	if err == nil {
		err = remote.Push(reference, content, remote.WithContext(ctx))
	}

	if err != nil {
		return fmt.Errorf("push %s: %w", path, err)
	}

	fmt.Fprintln(out, reference)

	return nil
}

// open opens an archive or a layout. It returns the only image or index of a layout, or an index of
// all its images.
func open(path string) (remote.Taggable, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}

	if !info.IsDir() {
		return tarball.ImageFromPath(path, nil)
	}

	index, err := layout.ImageIndexFromPath(path)
	if err != nil {
		return nil, err
	}

	manifest, err := index.IndexManifest()
	if err != nil {
		return nil, err
	}

	if len(manifest.Manifests) == 0 {
		return nil, errors.New("the layout holds no image")
	}

	if len(manifest.Manifests) > 1 {
		return index, nil
	}

	return single(index, manifest.Manifests[0])
}

func single(index v1.ImageIndex, described v1.Descriptor) (remote.Taggable, error) {
	if described.MediaType.IsIndex() {
		return index.ImageIndex(described.Digest)
	}

	return index.Image(described.Digest)
}
