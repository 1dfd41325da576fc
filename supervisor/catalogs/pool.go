package catalogs

import (
	"runtime"
	"sync"
	"weak"
)

// pool holds weak references to the contents in memory, so that equal contents are stored once.
// Content without a catalog is garbage-collected.
type pool struct {
	mu       sync.Mutex
	contents map[string]weak.Pointer[served] // by Snapshot.Digest
	claims   map[claim]weak.Pointer[Snapshot]
}

// claim is the digest that a server announces for its content. It is trusted only within the
// namespace of the CatalogSource, because verifying it requires reading the content. Otherwise a
// user who creates a CatalogSource could announce a well-known digest for different content.
type claim struct{ namespace, announced string }

func newPool() *pool {
	return &pool{contents: map[string]weak.Pointer[served]{}, claims: map[claim]weak.Pointer[Snapshot]{}}
}

// find returns the snapshot that a server in the namespace announces; nil if it must be read.
func (p *pool) find(namespace, announced string) *Snapshot {
	if announced == "" {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.claims[claim{namespace: namespace, announced: announced}].Value()
}

// add stores a snapshot and returns the one to use. The result shares content that is already in
// memory.
func (p *pool) add(namespace string, s *Snapshot) *Snapshot {
	p.mu.Lock()
	defer p.mu.Unlock()
	if held := p.contents[s.Digest].Value(); held != nil {
		s.shared, s.Content = held, held.content
	} else {
		made := weak.Make(s.shared)
		p.contents[s.Digest] = made
		runtime.AddCleanup(s.shared, p.dropContent, dropped[string, served]{s.Digest, made})
	}
	if s.announced == "" {
		return s
	}
	key := claim{namespace: namespace, announced: s.announced}
	if held := p.claims[key].Value(); held != nil && held.Digest == s.Digest {
		return held
	}
	made := weak.Make(s)
	p.claims[key] = made
	runtime.AddCleanup(s, p.dropClaim, dropped[claim, Snapshot]{key, made})
	return s
}

// dropped is an entry whose value was garbage-collected.
type dropped[K comparable, V any] struct {
	key  K
	made weak.Pointer[V]
}

// dropContent removes a content entry, unless another one has replaced it.
func (p *pool) dropContent(d dropped[string, served]) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.contents[d.key] == d.made {
		delete(p.contents, d.key)
	}
}

// dropClaim removes a claim entry, unless another one has replaced it.
func (p *pool) dropClaim(d dropped[claim, Snapshot]) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.claims[d.key] == d.made {
		delete(p.claims, d.key)
	}
}
