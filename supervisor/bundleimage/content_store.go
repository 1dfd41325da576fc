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

// contentKey identifies content. Users of different realms do not share it.
type contentKey struct {
	// realm is empty for content that the cluster's own sources have permitted.
	realm string
	// reference is the reference by digest.
	reference string
}

// of returns the store for the realm of a key.
func (s *contentStore) of(key contentKey) image.Store {
	store := s.store
	store.Realm = key.realm
	return store
}

// inMemory returns the objects of an image from memory; nil if they are not there.
func (s *contentStore) inMemory(key contentKey) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.memory.get(key)
}

// get returns the objects of an image from memory or disk; nil if they are in neither.
func (s *contentStore) get(key contentKey, digest string) ([]string, error) {
	if objects := s.inMemory(key); objects != nil {
		return objects, nil
	}
	kept, err := s.of(key).Open(s.local, key.reference, digest, image.Bundle())
	if err != nil {
		return nil, nil //nolint:nilerr // what is not there, or damaged, is pulled again
	}
	return s.decode(kept, key)
}

// decode reads the manifests of an image, and keeps them in memory for a while.
func (s *contentStore) decode(kept *image.Kept, key contentKey) ([]string, error) {
	defer kept.Release()
	s.reading <- struct{}{}
	defer func() { <-s.reading }()
	root, err := os.OpenRoot(kept.Path)
	if err != nil {
		return nil, &image.Error{Reference: key.reference, Reason: image.ReasonLocal, Err: fmt.Errorf("opening its manifests: %w", err)}
	}
	defer root.Close() //nolint:errcheck // nothing was written
	objects, err := manifests.Read(root.FS(), s.limits)
	if err != nil {
		return nil, contentError(key.reference, kept.Dir, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.memory.put(key, objects)
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
