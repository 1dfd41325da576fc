package mirror

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/distribution/reference"
	"golang.org/x/sync/errgroup"

	"github.com/chandlery/chandlery/bundles/image"
)

// Missing is an image that a mirror lacks, that differs there, or that could not be checked.
type Missing struct {
	// Image is the reference in the catalog. Mirrored is the expected reference in the mirror.
	Image    string `json:"image"`
	Mirrored string `json:"mirrored"`
	// Reason is the reason why the image could not be found; [image.ReasonNotFound] if the mirror lacks it. It is empty if
	// the image differs.
	Reason image.Reason `json:"reason"`
	// Message is the answer of the mirror.
	Message string `json:"message"`
	// Incomplete describes the image if the mirror has its manifest and lacks blobs; nil otherwise.
	Incomplete *image.IncompleteError `json:"-"`
	// Different describes the image if its tag names another image in the mirror; nil otherwise.
	Different *DifferentError `json:"-"`
	// Err is the error with Reason and Message.
	Err error `json:"-"`
}

// DifferentError is the error of a tag that names another image in the mirror than in the registry in its name.
type DifferentError struct {
	// Found and Want are the digests of the manifests for the client's platform, in the mirror and in the registry.
	Found, Want string
}

// Error names both manifests.
func (e *DifferentError) Error() string {
	return fmt.Sprintf("manifest %s is there, but the source has %s", e.Found, e.Want)
}

// Result is the result of a check.
type Result struct {
	// Missing are the images that are not as they should be, in the order of the images.
	Missing []Missing
	// Uncompared is the number of tags that are in the mirror, but that their registries did not resolve. Err is why the
	// first of them was not; nil if there is none.
	Uncompared int
	Err        error
}

// parallelChecks is the number of images that are checked at once.
const parallelChecks = 8

// Check looks for all images in their mirrors, with their configurations and layers for the client's platform. A tag must
// name the same image as in the registry in its name, if that resolves it.
func Check(ctx context.Context, client *image.Client, images []Image, mirrors Mirrors) (*Result, error) {
	places, err := mirrors.places(images)
	if err != nil {
		return nil, err
	}
	c := &check{client: client, away: map[string]error{}}
	missing, uncompared := make([]*Missing, len(images)), make([]error, len(images))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallelChecks)
	for i := range images {
		group.Go(func() error {
			failed, notCompared := c.check(ctx, images[i].Reference, places[i])
			if uncompared[i] = notCompared; failed != nil {
				missing[i] = describe(images[i].Reference, places[i], failed)
			}
			return context.Cause(ctx)
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	result := &Result{}
	for i := range images {
		if missing[i] != nil {
			result.Missing = append(result.Missing, *missing[i])
		}
		if uncompared[i] != nil {
			result.Uncompared++
			result.Err = cmp.Or(result.Err, uncompared[i])
		}
	}
	return result, nil
}

// describe returns an image with an error.
func describe(source, place string, err error) *Missing {
	m := &Missing{Image: source, Mirrored: place, Reason: image.ReasonOf(err), Message: err.Error(), Err: err}
	m.Incomplete, _ = errors.AsType[*image.IncompleteError](err)
	m.Different, _ = errors.AsType[*DifferentError](err)
	return m
}

// check checks images. It is safe for concurrent use.
type check struct {
	client *image.Client

	mu sync.Mutex
	// away are the errors of the registries that were unreachable. They are not asked again.
	away map[string]error
}

// check checks an image in the mirror. failed is what is wrong there, and uncompared is why a tag could not be compared.
func (c *check) check(ctx context.Context, source, place string) (failed, uncompared error) {
	found, err := image.CheckContent(ctx, c.client, place)
	if err != nil || image.IsDigest(source) {
		return err, nil //nolint:wrapcheck // names the image
	}
	want, err := c.resolve(ctx, source)
	if err == nil && found != want {
		return &DifferentError{Found: found, Want: want}, nil
	}
	return nil, err
}

// resolve returns the manifest of an image for the client's platform in the registry in its name.
func (c *check) resolve(ctx context.Context, source string) (string, error) {
	named, err := reference.ParseNormalizedNamed(source)
	if err != nil {
		return "", fmt.Errorf("image %q: %w", source, err)
	}
	registry := reference.Domain(named)
	c.mu.Lock()
	err = c.away[registry]
	c.mu.Unlock()
	if err != nil {
		return "", err
	}
	digest, err := image.PlatformManifest(ctx, c.client, source)
	if image.ReasonOf(err) == image.ReasonUnreachable {
		c.mu.Lock()
		c.away[registry] = err
		c.mu.Unlock()
	}
	return digest, err //nolint:wrapcheck // names the image
}
