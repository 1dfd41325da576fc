package image

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// manifest is the manifest of an image for one platform.
type manifest struct {
	v1.Manifest

	digest string
	// platform is empty if the image is for a single platform and does not name it.
	platform string
}

// document is any manifest: an image, an index, or an older format of either.
type document struct {
	SchemaVersion int             `json:"schemaVersion"`
	MediaType     string          `json:"mediaType"`
	Manifests     []v1.Descriptor `json:"manifests"`
	Layers        json.RawMessage `json:"layers"`
}

// manifest fetches the manifest of the image for the platform, and checks it against the limits.
func (s *session) manifest(ctx context.Context, ref name.Reference) (*manifest, error) {
	m, err := s.anyManifest(ctx, ref)
	if err != nil {
		return nil, err
	}
	return m, s.client.options.Limits.check(&m.Manifest)
}

// anyManifest fetches the manifest of the image for the platform. Its layers may exceed the limits.
func (s *session) anyManifest(ctx context.Context, ref name.Reference) (*manifest, error) {
	top, err := s.fetchManifest(ctx, ref)
	if err != nil {
		return nil, err
	}
	found, err := parseDocument(top)
	if errors.Is(err, errNoManifest) {
		err = &failure{ReasonInvalid, &foreignError{ref.Context().RegistryStr(), err}}
	}
	if err != nil {
		return nil, err
	}
	if len(found.Manifests) == 0 {
		return parseManifest(top, "")
	}
	child, err := s.choose(found.Manifests)
	if err != nil {
		return nil, err
	}
	inner, err := s.fetchManifest(ctx, ref.Context().Digest(child.Digest.String()))
	if err != nil {
		return nil, err
	}
	nested, err := parseDocument(inner)
	if err != nil {
		return nil, err
	}
	if len(nested.Manifests) > 0 {
		return nil, fail(ReasonInvalid, "the index names another index, %s", child.Digest)
	}
	return parseManifest(inner, child.Platform.String())
}

func (s *session) fetchManifest(ctx context.Context, ref name.Reference) (*remote.Descriptor, error) {
	var found *remote.Descriptor
	err := s.retry(ctx, "fetching the manifest", func() error {
		var err error
		found, err = s.puller.Get(ctx, ref)
		s.admitted = s.admitted || err == nil
		return err
	})
	switch {
	case err != nil:
		return nil, err
	case found.Size > s.client.options.Limits.MaxManifestBytes:
		return nil, tooLongAnswer(ref.Context().RegistryStr(), s.client.options.Limits.MaxManifestBytes)
	case found.MediaType == types.DockerManifestSchema1Signed:
		// For this type, the library takes the digest from a header, and does not compute it.
		return nil, unsupportedSchema(found, 1)
	}
	return found, nil
}

// unsupportedSchema returns the error for a manifest with a schema version that is not supported.
func unsupportedSchema(d *remote.Descriptor, version int) error {
	return fail(ReasonInvalid, "manifest %s has schema version %d, which is not supported: push the image with a current tool", d.Digest, version)
}

// errNoManifest is the error of a document that is no manifest of any version.
var errNoManifest = errors.New("is not JSON of the expected form")

func parseDocument(d *remote.Descriptor) (*document, error) {
	var out document
	if err := json.Unmarshal(d.Manifest, &out); err != nil {
		return nil, fail(ReasonInvalid, "manifest %s %w: %w", d.Digest, errNoManifest, err)
	}
	switch {
	case out.SchemaVersion == 0:
		return nil, fail(ReasonInvalid, "manifest %s %w: it has no schema version", d.Digest, errNoManifest)
	case out.SchemaVersion != 2:
		return nil, unsupportedSchema(d, out.SchemaVersion)
	case len(out.Manifests) == 0 && len(out.Layers) == 0:
		return nil, fail(ReasonInvalid, "manifest %s is neither of an image nor of an index: it has neither layers nor manifests", d.Digest)
	}
	return &out, nil
}

// choose returns the image for the platform in an index.
func (s *session) choose(all []v1.Descriptor) (*v1.Descriptor, error) {
	want := v1.Platform{OS: "linux", Architecture: runtime.GOARCH}
	if s.client.platform != nil {
		want = *s.client.platform
	}
	names := make([]string, 0, len(all))
	var first *v1.Descriptor
	for i := range all {
		// Attestations are listed with an unknown platform.
		p := all[i].Platform
		if p == nil || p.OS == "unknown" || p.Architecture == "unknown" {
			continue
		}
		if p.Satisfies(want) {
			return &all[i], nil
		}
		if first == nil {
			first = &all[i]
		}
		names = append(names, p.String())
	}
	if first != nil && s.client.platform == nil {
		return first, nil
	}
	slices.Sort(names)
	names = slices.Compact(names)
	if len(names) > 20 {
		names = append(names[:20], "…")
	}
	return nil, fail(ReasonPlatform, "is not made for %s; it is for: %s", want.String(), strings.Join(names, ", "))
}

func parseManifest(d *remote.Descriptor, platform string) (*manifest, error) {
	out := &manifest{digest: d.Digest.String(), platform: platform}
	if err := json.Unmarshal(d.Manifest, &out.Manifest); err != nil {
		return nil, fail(ReasonInvalid, "manifest %s cannot be decoded: %w", d.Digest, err)
	}
	return out, nil
}

var errTooLarge = errors.New("is too large")

// check compares the sizes in a manifest with the limits.
func (l *Limits) check(m *v1.Manifest) error {
	if len(m.Layers) > l.MaxLayers {
		return fail(ReasonTooLarge, "%w: %d layers, at most %d are allowed", errTooLarge, len(m.Layers), l.MaxLayers)
	}
	if m.Config.Size < 0 || m.Config.Size > l.MaxManifestBytes {
		return fail(ReasonTooLarge, "%w: a configuration of %d bytes, at most %d are allowed",
			errTooLarge, m.Config.Size, l.MaxManifestBytes)
	}
	left := l.MaxLayerBytes
	for i := range m.Layers {
		layer := &m.Layers[i]
		if layer.Size < 0 {
			return fail(ReasonInvalid, "layer %d has a size of %d bytes", i+1, layer.Size)
		}
		if !layer.MediaType.IsDistributable() {
			return fail(ReasonInvalid, "layer %d of type %q is not to be had from the registry", i+1, layer.MediaType)
		}
		if layer.Size > left {
			return fail(ReasonTooLarge, "%w: its layers have more than %d bytes", errTooLarge, l.MaxLayerBytes)
		}
		left -= layer.Size
	}
	return nil
}

// labels fetches the configuration of an image and returns its labels.
func (s *session) labels(ctx context.Context, ref name.Reference, m *manifest) (map[string]string, error) {
	var data []byte
	err := s.retry(ctx, "fetching the configuration", func() error {
		blob, err := s.blob(ctx, ref, &m.Config)
		if err != nil {
			return err
		}
		defer blob.Close() //nolint:errcheck // nothing was written
		data, err = io.ReadAll(blob)
		return err
	})
	if err != nil {
		return nil, err
	}
	var config struct {
		Config struct {
			Labels map[string]string `json:"Labels"`
		} `json:"config"`
	}
	if err := json.Unmarshal(data, &config); err != nil {
		return nil, fail(ReasonInvalid, "its configuration %s cannot be decoded: %w", m.Config.Digest, err)
	}
	return config.Config.Labels, nil
}

// blob opens a blob. A read fails if the blob's size or digest differs from its descriptor.
func (s *session) blob(ctx context.Context, ref name.Reference, d *v1.Descriptor) (io.ReadCloser, error) {
	layer, err := s.puller.Layer(ctx, ref.Context().Digest(d.Digest.String()))
	if err != nil {
		return nil, fmt.Errorf("opening blob %s: %w", d.Digest, err)
	}
	body, err := layer.Compressed()
	if err != nil {
		return nil, fmt.Errorf("opening blob %s: %w", d.Digest, err)
	}
	hasher, err := v1.Hasher(d.Digest.Algorithm)
	if err != nil {
		_ = body.Close()
		return nil, &failure{ReasonInvalid, fmt.Errorf("blob %s: %w", d.Digest, err)}
	}
	return &checkedBlob{ReadCloser: body, hash: hasher, want: *d}, nil
}
