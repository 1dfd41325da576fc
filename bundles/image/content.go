package image

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	"golang.org/x/sync/errgroup"
)

// maxBlobRequests is the number of concurrent requests for the blobs of one image.
const maxBlobRequests = 4

// IncompleteError is the error of an image whose registry has the manifest and lacks blobs.
type IncompleteError struct {
	// Manifest is the digest of the manifest. Platform is empty if the image does not name it.
	Manifest, Platform string
	// Missing are the digests of the missing blobs, in the order of the manifest.
	Missing []string
	// Blobs is the number of blobs of the image: its configuration and its layers.
	Blobs int
}

// Error names the manifest and the first missing blob.
func (e *IncompleteError) Error() string {
	var platform string
	if e.Platform != "" {
		platform = " for " + e.Platform
	}
	return fmt.Sprintf("manifest %s%s is there, but %d of its %d blobs are missing, first %s",
		e.Manifest, platform, len(e.Missing), e.Blobs, e.Missing[0])
}

// CheckContent requests the manifest of an image for the client's platform, and asks whether its configuration and its
// layers exist. It returns the digest of the manifest. It transfers no layer. Layers that no registry may distribute are
// not checked. The error is an [*Error], and wraps an [*IncompleteError] if blobs are missing.
func CheckContent(ctx context.Context, c *Client, reference string) (string, error) {
	return withManifest(ctx, c, reference, func(ctx context.Context, s *session, m *manifest) error { return s.checkBlobs(ctx, m) })
}

// PlatformManifest returns the digest of the manifest of an image for the client's platform. The error is an [*Error].
func PlatformManifest(ctx context.Context, c *Client, reference string) (string, error) {
	return withManifest(ctx, c, reference, func(context.Context, *session, *manifest) error { return nil })
}

// withManifest runs a function with the manifest of an image for the client's platform, and returns its digest.
func withManifest(ctx context.Context, c *Client, reference string, run func(context.Context, *session, *manifest) error) (string, error) {
	if c.options.Sources.Router != nil {
		pinned, err := pinned(ctx, c, reference)
		if err != nil {
			return "", err
		}
		reference = pinned
	}
	var digest string
	err := c.within(ctx, reference, c.options.ResolveTimeout, func(ctx context.Context, s *session) error {
		m, err := s.anyManifest(ctx, s.ref)
		if err != nil {
			return err
		}
		digest = m.digest
		return run(ctx, s, m)
	})
	return digest, err
}

// checkBlobs asks for the blobs of an image.
func (s *session) checkBlobs(ctx context.Context, m *manifest) error {
	blobs := []v1.Descriptor{m.Config}
	for i := range m.Layers {
		if m.Layers[i].MediaType.IsDistributable() {
			blobs = append(blobs, m.Layers[i])
		}
	}
	isMissing := make([]bool, len(blobs))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(maxBlobRequests)
	for i := range blobs {
		group.Go(func() error {
			err := s.checkBlob(ctx, &blobs[i])
			if classify(err) == ReasonNotFound {
				isMissing[i], err = true, nil
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return err //nolint:wrapcheck // it names the blob
	}
	found := &IncompleteError{Manifest: m.digest, Platform: m.platform, Blobs: len(blobs)}
	for i, missing := range isMissing {
		if missing {
			found.Missing = append(found.Missing, blobs[i].Digest.String())
		}
	}
	if len(found.Missing) > 0 {
		return &failure{ReasonNotFound, found}
	}
	return nil
}

// checkBlob asks for a blob, and compares its size.
func (s *session) checkBlob(ctx context.Context, d *v1.Descriptor) error {
	return s.retry(ctx, "asking for blob "+d.Digest.String(), func() error {
		layer, err := s.puller.Layer(ctx, s.ref.Context().Digest(d.Digest.String()))
		if err != nil {
			return err //nolint:wrapcheck // the caller names the blob
		}
		size, err := layer.Size()
		if answer, ok := errors.AsType[*transport.Error](err); ok && answer.StatusCode == http.StatusMethodNotAllowed {
			return opens(layer)
		}
		// Some registries answer HEAD requests without a size.
		if err == nil && size > 0 && size != d.Size {
			return fail(ReasonInvalid, "it has %d bytes, but its manifest says %d", size, d.Size)
		}
		return err //nolint:wrapcheck // the caller names the blob
	})
}

// opens requests a blob from a registry without HEAD requests for blobs, and reads nothing of it.
func opens(layer v1.Layer) error {
	body, err := layer.Compressed()
	if err != nil {
		return err //nolint:wrapcheck // the caller names the blob
	}
	return body.Close() //nolint:wrapcheck // the caller names the blob
}
