package catalogs

import (
	"runtime"
	"sync"
	"weak"
)

// snapshotPool holds weak references to the contents in memory, so that equal contents are stored once.
// Content without a catalog is garbage-collected.
type snapshotPool struct {
	mu             sync.Mutex
	contents       map[string]weak.Pointer[sharedContent] // by Snapshot.Digest
	byAnnouncement map[announcedKey]weak.Pointer[Snapshot]
}

// announcedKey is the digest that a server announces for its content. It is trusted only within the
// namespace of the CatalogSource, because verifying it requires reading the content. Otherwise a
// user who creates a CatalogSource could announce a well-known digest for different content.
type announcedKey struct{ namespace, announced string }

func newSnapshotPool() *snapshotPool {
	return &snapshotPool{contents: map[string]weak.Pointer[sharedContent]{}, byAnnouncement: map[announcedKey]weak.Pointer[Snapshot]{}}
}

// find returns the snapshot that a server in the namespace announces; nil if it must be read.
func (p *snapshotPool) find(namespace, announced string) *Snapshot {
	if announced == "" {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.byAnnouncement[announcedKey{namespace: namespace, announced: announced}].Value()
}

// add stores a snapshot and returns the one to use. The result shares content that is already in
// memory.
func (p *snapshotPool) add(namespace string, s *Snapshot) *Snapshot {
	p.mu.Lock()
	defer p.mu.Unlock()
	if cached := p.contents[s.Digest].Value(); cached != nil {
		s.shared, s.Content = cached, cached.content
	} else {
		pointer := weak.Make(s.shared)
		p.contents[s.Digest] = pointer
		runtime.AddCleanup(s.shared, p.dropContent, poolEntry[string, sharedContent]{s.Digest, pointer})
	}
	if s.announced == "" {
		return s
	}
	key := announcedKey{namespace: namespace, announced: s.announced}
	if cached := p.byAnnouncement[key].Value(); cached != nil && cached.Digest == s.Digest {
		return cached
	}
	pointer := weak.Make(s)
	p.byAnnouncement[key] = pointer
	runtime.AddCleanup(s, p.dropAnnounced, poolEntry[announcedKey, Snapshot]{key, pointer})
	return s
}

// poolEntry is an entry whose value was garbage-collected.
type poolEntry[K comparable, V any] struct {
	key     K
	pointer weak.Pointer[V]
}

// dropContent removes a content entry, unless another one has replaced it.
func (p *snapshotPool) dropContent(d poolEntry[string, sharedContent]) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.contents[d.key] == d.pointer {
		delete(p.contents, d.key)
	}
}

// dropAnnounced removes an entry of an announcement, unless another one has replaced it.
func (p *snapshotPool) dropAnnounced(d poolEntry[announcedKey, Snapshot]) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.byAnnouncement[d.key] == d.pointer {
		delete(p.byAnnouncement, d.key)
	}
}
