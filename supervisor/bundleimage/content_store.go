package bundleimage

import (
	"context"
	"fmt"
	"os"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/chandlery/chandlery/bundles"
	"github.com/chandlery/chandlery/bundles/image"
	"github.com/chandlery/chandlery/bundles/manifests"
)

// contentStore holds the content of images on disk, and the most recent content in memory.
type contentStore struct {
	store image.Store
	// local reads the store; it sends no requests to registries.
	local  *image.Client
	limits manifests.Limits
	// reading limits how many bundles are decoded at a time.
	reading chan struct{}

	mu     sync.Mutex
	memory *memory
}

// inMemory returns the objects of an image from memory; nil if they are not there.
func (s *contentStore) inMemory(reference string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.memory.get(reference)
}

// get returns the objects of an image from memory or disk; nil if they are in neither.
func (s *contentStore) get(reference, digest string) ([]string, error) {
	if objects := s.inMemory(reference); objects != nil {
		return objects, nil
	}
	kept, err := s.store.Open(s.local, reference, digest, image.Bundle())
	if err != nil {
		return nil, nil //nolint:nilerr // what is not there, or damaged, is pulled again
	}
	return s.decode(kept, reference)
}

// decode reads the manifests of an image, and keeps them in memory for a while.
func (s *contentStore) decode(kept *image.Kept, reference string) ([]string, error) {
	defer kept.Release()
	s.reading <- struct{}{}
	defer func() { <-s.reading }()
	root, err := os.OpenRoot(kept.Path)
	if err != nil {
		return nil, &image.Error{Reference: reference, Reason: image.ReasonLocal, Err: fmt.Errorf("opening its manifests: %w", err)}
	}
	defer root.Close() //nolint:errcheck // nothing was written
	objects, err := manifests.Read(root.FS(), s.limits)
	if err != nil {
		return nil, contentError(reference, kept.Dir, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.memory.put(reference, objects)
	return objects, nil
}

// shrink removes content until the cache does not exceed a size.
func (s *contentStore) shrink(ctx context.Context, size int64) {
	usage, err := s.store.Bound(size)
	if err != nil {
		log.FromContext(ctx).Error(err, "Cannot remove old bundles from the cache", "directory", s.store.Dir)
	}
	cacheBytes.Set(float64(usage.Bytes))
	cacheImages.Set(float64(usage.Images))
}

// contentError returns an error about the manifests of an image.
func contentError(reference, dir string, err error) error {
	reason := image.ReasonInvalid
	for _, problem := range bundles.AsProblems(err) {
		if problem.Unreadable {
			reason = image.ReasonLocal
		}
	}
	return &image.Error{Reference: reference, Reason: reason, Err: fmt.Errorf("its directory %s cannot be used as a bundle: %w", dir, err)}
}
