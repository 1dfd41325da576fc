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

// artifact is a manifest that is not an image.
type artifact struct {
	manifest, config []byte
	layer            v1.Layer
}

// Artifact returns a manifest that is not an image but refers to one, the subject. Its content is a
// layer, and kind is the type of the content.
func Artifact(kind types.MediaType, content v1.Layer, subject v1.Descriptor, created time.Time) (v1.Image, error) {
	return newArtifact(v1.Manifest{
		ArtifactType: string(kind), Config: v1.Descriptor{MediaType: emptyConfig}, Subject: &subject,
		Annotations: map[string]string{"org.opencontainers.image.created": created.UTC().Format(time.RFC3339)},
	}, []byte("{}"), content)
}

// Package returns a manifest that is not an image, such as that of a Helm chart. Its content is a layer, which the
// configuration describes.
func Package(configType types.MediaType, config []byte, content v1.Layer, annotations map[string]string) (v1.Image, error) {
	return newArtifact(v1.Manifest{Config: v1.Descriptor{MediaType: configType}, Annotations: annotations}, config, content)
}

// newArtifact completes a manifest with its configuration and its layer.
func newArtifact(manifest v1.Manifest, config []byte, content v1.Layer) (v1.Image, error) {
	descriptor, err := partial.Descriptor(content)
	if err != nil {
		return nil, fmt.Errorf("describing the content of an artifact: %w", err)
	}
	if manifest.Config.Digest, manifest.Config.Size, err = v1.SHA256(bytes.NewReader(config)); err != nil {
		return nil, fmt.Errorf("describing the configuration of an artifact: %w", err)
	}
	manifest.SchemaVersion, manifest.MediaType, manifest.Layers = 2, types.OCIManifestSchema1, []v1.Descriptor{*descriptor}
	text, err := json.Marshal(manifest)
	if err != nil {
		return nil, fmt.Errorf("writing the manifest of an artifact: %w", err)
	}
	image, err := partial.CompressedToImage(artifact{manifest: text, config: config, layer: content})
	if err != nil {
		return nil, fmt.Errorf("making an artifact: %w", err)
	}
	return image, nil
}

// RawConfigFile returns the configuration, which is empty unless the artifact is a package.
func (a artifact) RawConfigFile() ([]byte, error) { return a.config, nil }

// MediaType returns the type of an image manifest, which registries use for artifacts, too.
func (artifact) MediaType() (types.MediaType, error) { return types.OCIManifestSchema1, nil }

// RawManifest returns the manifest.
func (a artifact) RawManifest() ([]byte, error) { return a.manifest, nil }

// LayerByDigest returns the content.
func (a artifact) LayerByDigest(wanted v1.Hash) (partial.CompressedLayer, error) {
	hash, err := a.layer.Digest()
	if err != nil {
		return nil, fmt.Errorf("reading the digest of the content: %w", err)
	}
	if hash != wanted {
		return nil, fmt.Errorf("%w: %s", errNoBlob, wanted)
	}
	return a.layer, nil
}
