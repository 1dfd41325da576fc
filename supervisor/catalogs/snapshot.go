package catalogs

import (
	"encoding/hex"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/chandlery/chandlery/supervisor/plansteps"
	"github.com/chandlery/chandlery/supervisor/resolution/content"
)

// Snapshot is the content of a catalog at one moment, without manifests. Only the digests of
// manifests that are read later change it.
type Snapshot struct {
	// Content is the part that resolution needs. Catalogs with the same content share it.
	Content *content.Catalog
	// Digest is the hexadecimal SHA-256 of everything that the server sent. Snapshots with the same
	// digest are equal.
	Digest string

	// shared holds Content and listed. The reference keeps them in the pool.
	shared *sharedContent
	// announced is the content digest that the server announces; empty for none.
	announced string

	mu        sync.Mutex
	manifests map[bundleKey]sum
}

// IsAnnounced reports whether the server announced a digest of its content, which also covers heads of channels.
func (s *Snapshot) IsAnnounced() bool { return s.announced != "" }

type bundleKey struct{ pkg, name string }

// sum is a SHA-256 digest.
type sum [32]byte

// Manifests returns the digest of a bundle's inline manifests, computed by plan.Digest. It is empty
// if the bundle has no inline manifests or the digest is unknown. Pages carry no manifests;
// Store.Bundle records the digest when it reads them.
func (s *Snapshot) Manifests(pkg, bundle string) string {
	key := bundleKey{pkg: pkg, name: bundle}
	if s.shared != nil {
		if digest, ok := s.shared.listed[key]; ok {
			return hex.EncodeToString(digest[:])
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if digest, ok := s.manifests[key]; ok {
		return hex.EncodeToString(digest[:])
	}
	return ""
}

// setManifests records the digest of manifests that have been read. It reports whether it replaced a
// different digest.
func (s *Snapshot) setManifests(pkg, bundle, digest string) (changed bool) {
	key := bundleKey{pkg: pkg, name: bundle}
	var next sum
	if n, err := hex.Decode(next[:], []byte(digest)); err != nil || n != len(next) || s.shared == nil || !s.shared.inline(key) {
		return false
	}
	if _, listed := s.shared.listed[key]; listed {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	before, known := s.manifests[key]
	if s.manifests == nil {
		s.manifests = map[bundleKey]sum{}
	}
	s.manifests[key] = next
	return known && before != next
}

// bundle returns a bundle with an image, without its manifests. The snapshot lacks large properties of unknown types. ok
// is false if the snapshot is nil, lacks the bundle, or has no usable image of it.
func (s *Snapshot) bundle(catalog types.NamespacedName, pkg, channel, name string) (bundle plansteps.Bundle, ok bool) {
	if s == nil {
		return plansteps.Bundle{}, false
	}
	found := s.Content.Package(pkg)
	if found == nil || found.Channel(channel) == nil {
		return plansteps.Bundle{}, false
	}
	entry := found.Channel(channel).Entry(name)
	if entry == nil || entry.Bundle.Image == "" || entry.Bundle.Err != nil {
		return plansteps.Bundle{}, false
	}
	bundle = plansteps.Bundle{Name: name, Package: pkg, Channel: channel, Catalog: catalog}
	for _, p := range entry.Bundle.Subject.Properties {
		bundle.Properties = append(bundle.Properties, plansteps.Property{Type: p.Type, Value: p.Value})
	}
	return bundle, true
}

// Bytes returns an estimate of the snapshot's memory in bytes, including shared content.
func (s *Snapshot) Bytes() int64 {
	if s.shared == nil {
		return 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.shared.bytes() + int64(len(s.manifests))*manifestBytes
}

// manifestBytes estimates the memory of one manifest digest.
const manifestBytes = 128

// sharedContent is the data that catalogs with the same content share.
type sharedContent struct {
	content *content.Catalog
	// listed holds the digests of manifests that a server sent with the content.
	listed map[bundleKey]sum
}

func (s *sharedContent) bytes() int64 {
	return s.content.Bytes() + int64(len(s.listed))*manifestBytes
}

// inline reports whether the content has a bundle without an image.
func (s *sharedContent) inline(key bundleKey) bool {
	pkg := s.content.Package(key.pkg)
	if pkg == nil {
		return false
	}
	bundle := pkg.Bundle(key.name)
	return bundle != nil && bundle.Image == ""
}
