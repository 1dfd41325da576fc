package manifest

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Source is a CatalogSource, as its packages show it.
type Source struct {
	Namespace, Name        string
	DisplayName, Publisher string
	Labels                 map[string]string
	Created                time.Time
	Priority               int
	// UnavailableSince is when the catalog stopped serving. It is zero while the catalog serves.
	UnavailableSince time.Time
}

// Catalog is a catalog with its packages, sorted by name. It is never modified.
type Catalog struct {
	Source   *Source
	Packages []*Package
	// BrokenChannels are the channels that Packages leave out, as PACKAGE/CHANNEL.
	BrokenChannels []string
	// Digest identifies the content from which Packages were made.
	Digest string
	// Connected is when the connection began from which Packages were read, and ReadAt when they were read.
	Connected, ReadAt time.Time
}

// Item is a package of a catalog.
type Item struct {
	Source  *Source
	Package *Package
}

// Index holds the packages of all catalogs. Its methods are safe for concurrent use.
type Index struct {
	// global is the namespace whose catalogs serve every namespace.
	global string

	mu       sync.RWMutex
	catalogs map[types.NamespacedName]Catalog
	ready    bool
	changes  uint64
}

// NewIndex returns an empty index. The catalogs in the namespace global serve every namespace.
func NewIndex(global string) *Index {
	return &Index{global: global, catalogs: map[types.NamespacedName]Catalog{}}
}

// Set replaces a catalog.
func (x *Index) Set(c Catalog) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.catalogs[types.NamespacedName{Namespace: c.Source.Namespace, Name: c.Source.Name}] = c
	x.changes++
}

// Remove removes a catalog.
func (x *Index) Remove(key types.NamespacedName) {
	x.mu.Lock()
	defer x.mu.Unlock()
	delete(x.catalogs, key)
	x.changes++
}

// Changes returns the number of changes of the catalogs. While it stays the same, lists do.
func (x *Index) Changes() uint64 {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.changes
}

// Catalog returns a catalog. ok is false if the index does not have it.
func (x *Index) Catalog(key types.NamespacedName) (c Catalog, ok bool) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	c, ok = x.catalogs[key]
	return c, ok
}

// SetReady records that the catalogs have been read for the first time.
func (x *Index) SetReady() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.ready = true
}

// Ready reports whether the catalogs have been read for the first time. Until then, a missing package may exist.
func (x *Index) Ready() bool {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.ready
}

// List returns the packages that a namespace shows: those of its own catalogs and of the global ones. Without a
// namespace, it returns those of all catalogs. They are sorted by the names of package, namespace and catalog.
func (x *Index) List(namespace string) []Item {
	var items []Item
	for _, c := range x.visible(namespace) {
		for _, p := range c.Packages {
			items = append(items, Item{Source: c.Source, Package: p})
		}
	}
	slices.SortFunc(items, func(a, b Item) int {
		return cmp.Or(strings.Compare(a.Package.Name, b.Package.Name),
			strings.Compare(a.Source.Namespace, b.Source.Namespace), strings.Compare(a.Source.Name, b.Source.Name))
	})
	return items
}

// Get returns the package of a name that a namespace shows. Of several, it is the one of the namespace's own catalogs,
// then of the catalog with the highest priority, then of the first one by name.
func (x *Index) Get(namespace, name string) (item Item, ok bool) {
	var found []Item
	for _, c := range x.visible(namespace) {
		at, has := slices.BinarySearchFunc(c.Packages, name, func(p *Package, name string) int { return strings.Compare(p.Name, name) })
		if has {
			found = append(found, Item{Source: c.Source, Package: c.Packages[at]})
		}
	}
	if len(found) == 0 {
		return Item{}, false
	}
	foreign := func(s *Source) int {
		if s.Namespace == namespace {
			return 0
		}
		return 1
	}
	return slices.MinFunc(found, func(a, b Item) int {
		return cmp.Or(foreign(a.Source)-foreign(b.Source), cmp.Compare(b.Source.Priority, a.Source.Priority), strings.Compare(a.Source.Name, b.Source.Name))
	}), true
}

// visible returns the catalogs that a namespace shows.
func (x *Index) visible(namespace string) []Catalog {
	x.mu.RLock()
	defer x.mu.RUnlock()
	var out []Catalog
	for key, c := range x.catalogs {
		if namespace == "" || key.Namespace == namespace || key.Namespace == x.global {
			out = append(out, c)
		}
	}
	return out
}
