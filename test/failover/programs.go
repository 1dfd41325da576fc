package failover

import (
	"context"
	"fmt"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/chandlery/chandlery/deploy/images"
	"github.com/chandlery/chandlery/test/buildcache"
	"github.com/chandlery/chandlery/test/nodes"
)

// version is the image tag in the manifests.
const version = "latest"

// sampleOperatorImage is the image of the sample operators. They only wait.
const sampleOperatorImage = "pause:3.10"

// PushPrograms builds the images of this checkout's programs, for this machine only, and pushes
// them to the bed's registry.
func PushPrograms(ctx context.Context, bed *nodes.Bed) error {
	root, err := buildcache.SourceDir(".")
	if err != nil {
		return err
	}
	made, err := images.Build(ctx, images.Options{
		Dir: root, Version: version, Created: time.Unix(0, 0), Platforms: []v1.Platform{images.Local()}, Fast: true,
	})
	if err != nil {
		return fmt.Errorf("making the images: %w", err)
	}
	for _, image := range made {
		repository, err := name.NewRepository(bed.Images.Address()+"/"+image.Name, name.Insecure)
		if err != nil {
			return fmt.Errorf("naming image %s: %w", image.Name, err)
		}
		if err := image.Push(ctx, repository, []string{version}); err != nil {
			return fmt.Errorf("pushing image %s: %w", image.Name, err)
		}
	}
	return nil
}
