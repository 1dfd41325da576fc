package release

import (
	"context"
	"path/filepath"
)

// Push writes images and chart of the release in a folder, with their signatures, to the registry that the release
// names, with the credentials of "docker login". It returns the host of the registry with its prefix.
func Push(ctx context.Context, dir string) (string, error) {
	stated, err := readProvenance(filepath.Join(dir, provenanceFile))
	if err != nil {
		return "", err
	}
	var all []stored
	for _, name := range []string{imagesDir, signaturesDir} {
		stored, err := readLayout(filepath.Join(dir, name))
		if err != nil {
			return "", err
		}
		all = append(all, stored...)
	}
	return stated.images, push(ctx, all, stated.images)
}
