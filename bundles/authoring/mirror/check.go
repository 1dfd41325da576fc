package mirror

import (
	"context"
	"errors"

	"golang.org/x/sync/errgroup"

	"github.com/chandlery/chandlery/bundles/image"
)

// Missing is an image that a mirror lacks or that could not be checked.
type Missing struct {
	// Image is the reference in the catalog. Mirrored is the expected reference in the mirror.
	Image    string `json:"image"`
	Mirrored string `json:"mirrored"`
	// Reason is the reason why the image could not be found; [image.ReasonNotFound] if the mirror lacks it.
	Reason image.Reason `json:"reason"`
	// Message is the answer of the mirror.
	Message string `json:"message"`
	// Incomplete describes the image if the mirror has its manifest and lacks blobs; nil otherwise.
	Incomplete *image.IncompleteError `json:"-"`
	// Err is the error with Reason and Message.
	Err error `json:"-"`
}

// parallelChecks is the number of images that are checked at once.
const parallelChecks = 8

// Check looks for all images in a mirror, with their configurations and layers for the client's platform. It returns the
// missing and the incomplete ones, in the order of the images.
func Check(ctx context.Context, client *image.Client, images []Image, mirror string) ([]Missing, error) {
	answers := make([]*Missing, len(images))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallelChecks)
	for i := range images {
		at, err := Mirrored(images[i].Reference, mirror)
		if err != nil {
			return nil, err
		}
		group.Go(func() error {
			if err := image.CheckContent(ctx, client, at); err != nil {
				answers[i] = &Missing{Image: images[i].Reference, Mirrored: at, Reason: image.ReasonOf(err), Message: err.Error(), Err: err}
				answers[i].Incomplete, _ = errors.AsType[*image.IncompleteError](err)
			}
			return context.Cause(ctx)
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	var missing []Missing
	for _, answer := range answers {
		if answer != nil {
			missing = append(missing, *answer)
		}
	}
	return missing, nil
}
