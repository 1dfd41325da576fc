package content

import (
	"slices"
	"strings"

	"github.com/chandlery/chandlery/bundles"
	"github.com/chandlery/chandlery/supervisor/resolution/constraint"
)

// Catalog is the content of a catalog. It is immutable.
type Catalog struct {
	packages []*Package
	byGVK    map[bundles.GVK][]*Entry
	byLabel  map[string][]*Entry
	size     int64
}

// Packages returns all packages, sorted by name.
func (c *Catalog) Packages() []*Package { return c.packages }

// Package returns the package with a name; nil if there is none.
func (c *Catalog) Package(name string) *Package {
	i, ok := slices.BinarySearchFunc(c.packages, name, func(p *Package, name string) int { return strings.Compare(p.Name, name) })
	if !ok {
		return nil
	}
	return c.packages[i]
}

// Providing returns the entries whose bundles provide an API. The order has no meaning but is
// deterministic.
func (c *Catalog) Providing(gvk bundles.GVK) []*Entry { return c.byGVK[gvk] }

// Labelled returns the entries whose bundles have a label, in a deterministic order without
// meaning.
func (c *Catalog) Labelled(label string) []*Entry { return c.byLabel[label] }

// Bytes returns an estimate of the memory that the catalog takes, in bytes.
func (c *Catalog) Bytes() int64 { return c.size }

// Package is one package of a catalog.
type Package struct {
	Name           string
	DefaultChannel string
	// Deprecation is the reason not to use the package any more; empty if it is not deprecated.
	Deprecation string
	// Channels are the channels of the package, sorted by name.
	Channels []*Channel
	// Bundles are the bundles of the package, sorted by name.
	Bundles []*Bundle
}

// Channel returns the channel with a name; nil if there is none.
func (p *Package) Channel(name string) *Channel {
	i, ok := slices.BinarySearchFunc(p.Channels, name, func(c *Channel, name string) int { return strings.Compare(c.Name, name) })
	if !ok {
		return nil
	}
	return p.Channels[i]
}

// Bundle returns the bundle with a name; nil if there is none.
func (p *Package) Bundle(name string) *Bundle {
	i, ok := slices.BinarySearchFunc(p.Bundles, name, func(b *Bundle, name string) int { return strings.Compare(b.Name, name) })
	if !ok {
		return nil
	}
	return p.Bundles[i]
}

// Channel is one channel of a package.
type Channel struct {
	Name    string
	Package *Package
	// Deprecation is the reason not to use the channel any more; empty if it is not deprecated.
	Deprecation string
	// Entries are the entries of the channel, sorted by bundle name.
	Entries []*Entry
	// Chain lists the entries from the head downwards along "replaces". It omits skipped entries.
	// It is nil if Err is set.
	Chain []*Entry
	// Err is the reason why the entries have no order: no head, several heads or a cycle. The texts
	// are those of OLM, because tools compare them.
	Err error
}

// Entry returns the entry of the bundle with a name; nil if there is none.
func (c *Channel) Entry(name string) *Entry {
	i, ok := slices.BinarySearchFunc(c.Entries, name, func(e *Entry, name string) int { return strings.Compare(e.Bundle.Name, name) })
	if !ok {
		return nil
	}
	return c.Entries[i]
}

// Entry is the position of a bundle in a channel.
type Entry struct {
	Channel *Channel
	Bundle  *Bundle
	// Position is the index in the channel's Chain; negative for an entry that is not in it.
	Position int
	Replaces string
	Skips    []string
	// SkipRange is the range of versions that the bundle can be installed over; empty for none.
	SkipRange string
}

// Bundle is one version of an operator.
type Bundle struct {
	Name string
	// Package is the package that the bundle belongs to.
	Package *Package
	// Image is the image that holds the manifests; empty if the manifests are inline.
	Image string
	// Deprecation is the reason not to use the bundle any more; empty if it is not deprecated.
	Deprecation string
	// Subject holds the identity, the APIs and the properties of the bundle.
	Subject constraint.Subject
	// Requires lists the constraints on other operators.
	Requires []constraint.Constraint
	// Err names a property that cannot be read; nil if there is none. A bundle with Err cannot be
	// chosen.
	Err error
}
