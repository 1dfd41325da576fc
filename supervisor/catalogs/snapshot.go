package catalogs

import (
	"encoding/hex"
	"sync"

	"github.com/chandlery/chandlery/supervisor/catalogs/content"
)

// Snapshot is what a catalog served at one moment, without the manifests. It does
// not change after it was made, but for what becomes known of manifests.
type Snapshot struct {
	// Content is the part that resolution needs. Catalogs that serve the same share
	// it.
	Content *content.Catalog
	// Digest is the SHA-256, in hex, of all that was served. Two snapshots with
	// the same digest are the same.
	Digest string

	// shared is what Content and listed belong to, held so that others find it.
	shared *served
	// announced is the server's own word for the content, empty when it has
	// none.
	announced string

	mu         sync.Mutex
	remembered map[bundleKey]sum
}

type bundleKey struct{ pkg, name string }

// sum is a SHA-256.
type sum [32]byte

// Manifests gives the digest of a bundle's inline manifests as plan.Digest makes
// it; empty when the catalog has none for it or when it is not known yet: a
// catalog that is read by pages sends no manifests, and the digest is known once
// Store.Bundle has read them.
func (s *Snapshot) Manifests(pkg, bundle string) string {
	key := bundleKey{pkg: pkg, name: bundle}
	if s.shared != nil {
		if digest, ok := s.shared.listed[key]; ok {
			return hex.EncodeToString(digest[:])
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if digest, ok := s.remembered[key]; ok {
		return hex.EncodeToString(digest[:])
	}
	return ""
}

// remember keeps the digest of manifests that have been read. True when another
// one was known.
func (s *Snapshot) remember(pkg, bundle, digest string) (changed bool) {
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
	before, known := s.remembered[key]
	if s.remembered == nil {
		s.remembered = map[bundleKey]sum{}
	}
	s.remembered[key] = next
	return known && before != next
}

// Bytes estimates how much memory the snapshot takes, with what it shares.
func (s *Snapshot) Bytes() int64 {
	if s.shared == nil {
		return 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.shared.bytes() + int64(len(s.remembered))*manifestBytes
}

// manifestBytes is about what the digest of one bundle's manifests takes.
const manifestBytes = 128

// served is what catalogs of the same content share.
type served struct {
	content *content.Catalog
	// listed are the digests of the manifests that came with the content.
	listed map[bundleKey]sum
}

func (s *served) bytes() int64 {
	return s.content.Bytes() + int64(len(s.listed))*manifestBytes
}

// inline says whether the content has a bundle whose manifests are not in an image.
func (s *served) inline(key bundleKey) bool {
	pkg := s.content.Package(key.pkg)
	if pkg == nil {
		return false
	}
	bundle := pkg.Bundle(key.name)
	return bundle != nil && bundle.Image == ""
}
