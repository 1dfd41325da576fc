package catalogs

import (
	"runtime"
	"sync"
	"weak"
)

// pool knows what is held of the contents of catalogs, so that each is held once.
// It keeps nothing alive: what no catalog refers to any more is gone.
type pool struct {
	mu       sync.Mutex
	contents map[string]weak.Pointer[served] // by Snapshot.Digest
	claims   map[claim]weak.Pointer[Snapshot]
}

// claim is a server's word for its content. It is believed in the namespace of the
// CatalogSource only: the word cannot be checked without reading the content, and
// whoever may make a CatalogSource somewhere could else give a well-known digest to
// a content of his own before others read theirs.
type claim struct{ namespace, announced string }

func newPool() *pool {
	return &pool{contents: map[string]weak.Pointer[served]{}, claims: map[claim]weak.Pointer[Snapshot]{}}
}

// find gives the snapshot of a content that a server of the namespace announces;
// nil when it has to be read.
func (p *pool) find(namespace, announced string) *Snapshot {
	if announced == "" {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.claims[claim{namespace: namespace, announced: announced}].Value()
}

// add takes a snapshot that has been read, and gives the one to be used: it shares
// what is held already.
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

// dropped is an entry whose value is gone.
type dropped[K comparable, V any] struct {
	key  K
	made weak.Pointer[V]
}

// dropContent removes an entry, unless there is another one in its place by now.
func (p *pool) dropContent(d dropped[string, served]) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.contents[d.key] == d.made {
		delete(p.contents, d.key)
	}
}

// dropClaim is the same for claims.
func (p *pool) dropClaim(d dropped[claim, Snapshot]) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.claims[d.key] == d.made {
		delete(p.claims, d.key)
	}
}
