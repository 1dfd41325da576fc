package release

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

var (
	errIncomplete = errors.New("the release is incomplete, because making it failed; run make release again, and push the folder that it names")
	errUnsigned   = errors.New("the release is incomplete; run make release again. These images lack a signature or a provenance")
)

// Push writes images and chart of the release in a folder, with their signatures, to the registry that the release
// names, with the credentials of "docker login". It returns the host of the registry with its prefix. It refuses an
// incomplete release, but verifies no signature.
func Push(ctx context.Context, dir string) (string, error) {
	if strings.HasSuffix(filepath.Clean(dir), incompleteExtension) {
		return "", fmt.Errorf("%s: %w", dir, errIncomplete)
	}
	stated, err := readProvenance(filepath.Join(dir, provenanceFile))
	if err != nil {
		return "", err
	}
	all, err := readLayout(filepath.Join(dir, imagesDir))
	if err != nil {
		return "", err
	}
	signatures, err := readLayout(filepath.Join(dir, signaturesDir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	if names := unsigned(all, signatures); len(names) > 0 {
		return "", fmt.Errorf("%s: %w: %s", dir, errUnsigned, strings.Join(names, ", "))
	}
	return stated.images, push(ctx, append(all, signatures...), stated.images)
}

// unsigned returns the names of the images and the chart that lack a signature or a provenance, sorted.
func unsigned(all, signatures []stored) []string {
	stated := map[v1.Hash][]string{}
	for _, one := range signatures {
		if one.subject != nil {
			stated[one.subject.Digest] = append(stated[one.subject.Digest], one.predicate)
		}
	}
	names := map[string]bool{}
	for _, one := range all {
		types := stated[one.digest]
		if one.repository != "" && (!slices.Contains(types, signatureType) || !slices.Contains(types, predicateType)) {
			names[one.repository] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}
