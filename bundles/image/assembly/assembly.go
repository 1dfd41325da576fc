// Package assembly builds OCI images from layers, and artifacts that refer to images, without a container engine.
package assembly

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// Assemble returns an OCI image with a configuration and layers, the lowest first. createdBy is the
// creator in the history of the image.
func Assemble(createdBy string, config *v1.ConfigFile, layers ...v1.Layer) (v1.Image, error) {
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	config.RootFS = v1.RootFS{Type: "layers"}
	image, err := mutate.ConfigFile(image, config)
	if err != nil {
		return nil, fmt.Errorf("configuring the image: %w", err)
	}
	return Append(createdBy, config.Created, image, layers...)
}

// Append returns an image with additional layers.
func Append(createdBy string, created v1.Time, image v1.Image, layers ...v1.Layer) (v1.Image, error) {
	adds := make([]mutate.Addendum, 0, len(layers))
	for _, l := range layers {
		adds = append(adds, mutate.Addendum{Layer: l, History: v1.History{CreatedBy: createdBy, Created: created}})
	}
	image, err := mutate.Append(image, adds...)
	if err != nil {
		return nil, fmt.Errorf("putting the layers together: %w", err)
	}
	return image, nil
}

// emptyConfig is the media type of the configuration in a manifest that is not an image.
const emptyConfig types.MediaType = "application/vnd.oci.empty.v1+json"

var errNoBlob = errors.New("the artifact holds no such blob")

// artifact is a manifest that is not an image but refers to one.
type artifact struct {
	manifest []byte
	layer    v1.Layer
}

// Artifact returns a manifest that is not an image but refers to one, the subject. Its content is a
// layer, and kind is the type of the content.
func Artifact(kind types.MediaType, content v1.Layer, subject v1.Descriptor, created time.Time) (v1.Image, error) {
	descriptor, err := partial.Descriptor(content)
	if err != nil {
		return nil, fmt.Errorf("describing the list: %w", err)
	}
	config := []byte("{}")
	hash, size, err := v1.SHA256(bytes.NewReader(config))
	if err != nil {
		return nil, fmt.Errorf("describing the configuration: %w", err)
	}
	manifest, err := json.Marshal(v1.Manifest{
		SchemaVersion: 2, MediaType: types.OCIManifestSchema1, ArtifactType: string(kind),
		Config:      v1.Descriptor{MediaType: emptyConfig, Size: size, Digest: hash},
		Layers:      []v1.Descriptor{*descriptor},
		Subject:     &subject,
		Annotations: map[string]string{"org.opencontainers.image.created": created.UTC().Format(time.RFC3339)},
	})
	if err != nil {
		return nil, fmt.Errorf("writing the manifest of the list: %w", err)
	}
	image, err := partial.CompressedToImage(artifact{manifest: manifest, layer: content})
	if err != nil {
		return nil, fmt.Errorf("making the list an artifact: %w", err)
	}
	return image, nil
}

// RawConfigFile returns an empty configuration, because an artifact does not run.
func (artifact) RawConfigFile() ([]byte, error) { return []byte("{}"), nil }

// MediaType returns the type of an image manifest, which registries use for artifacts, too.
func (artifact) MediaType() (types.MediaType, error) { return types.OCIManifestSchema1, nil }

// RawManifest returns the manifest that refers to the image.
func (a artifact) RawManifest() ([]byte, error) { return a.manifest, nil }

// LayerByDigest returns the content.
func (a artifact) LayerByDigest(wanted v1.Hash) (partial.CompressedLayer, error) {
	hash, err := a.layer.Digest()
	if err != nil {
		return nil, fmt.Errorf("reading the digest of the list: %w", err)
	}
	if hash != wanted {
		return nil, fmt.Errorf("%w: %s", errNoBlob, wanted)
	}
	return a.layer, nil
}
