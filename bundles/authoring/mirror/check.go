package mirror

import (
	"context"

	"golang.org/x/sync/errgroup"

	"github.com/chandlery/chandlery/bundles/image"
)

// Missing is an image that a mirror lacks, or that the mirror could not be asked for.
type Missing struct {
	// Image is the reference as the catalog has it, Mirrored where the mirror should have it.
	Image    string `json:"image"`
	Mirrored string `json:"mirrored"`
	// Reason is what keeps the image from being there; [image.ReasonNotFound] when the mirror
	// lacks it.
	Reason image.Reason `json:"reason"`
	// Message says what the mirror answered.
	Message string `json:"message"`
}

// parallelChecks bounds how many images a mirror is asked for at a time.
const parallelChecks = 8

// Check asks a mirror for all images and returns those that it does not have, in the order of
// the images.
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
			if _, err := client.Find(ctx, at); err != nil {
				answers[i] = &Missing{Image: images[i].Reference, Mirrored: at, Reason: image.ReasonOf(err), Message: err.Error()}
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
