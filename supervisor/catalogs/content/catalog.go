package content

import (
	"slices"
	"strings"

	"github.com/chandlery/chandlery/bundles"
	"github.com/chandlery/chandlery/supervisor/resolver/constraint"
)

// Catalog is the content of a catalog.
type Catalog struct {
	packages []*Package
	byGVK    map[bundles.GVK][]*Entry
	byLabel  map[string][]*Entry
	size     int64
}

// Packages are all of them, by name.
func (c *Catalog) Packages() []*Package { return c.packages }

// Package gives the package of a name; nil when there is none.
func (c *Catalog) Package(name string) *Package {
	i, ok := slices.BinarySearchFunc(c.packages, name, func(p *Package, name string) int { return strings.Compare(p.Name, name) })
	if !ok {
		return nil
	}
	return c.packages[i]
}

// Providing gives the entries whose bundles bring an API, in no order that means
// anything but always the same.
func (c *Catalog) Providing(gvk bundles.GVK) []*Entry { return c.byGVK[gvk] }

// Labelled gives the entries whose bundles bear a label, likewise.
func (c *Catalog) Labelled(label string) []*Entry { return c.byLabel[label] }

// Bytes estimates how much memory the catalog takes.
func (c *Catalog) Bytes() int64 { return c.size }

// Package is one package of a catalog.
type Package struct {
	Name           string
	DefaultChannel string
	// Deprecation says why the package should no longer be used; empty when it
	// may be.
	Deprecation string
	// Channels by name.
	Channels []*Channel
	// Bundles by name.
	Bundles []*Bundle
}

// Channel gives the channel of a name; nil when there is none.
func (p *Package) Channel(name string) *Channel {
	i, ok := slices.BinarySearchFunc(p.Channels, name, func(c *Channel, name string) int { return strings.Compare(c.Name, name) })
	if !ok {
		return nil
	}
	return p.Channels[i]
}

// Bundle gives the bundle of a name; nil when there is none.
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
	// Deprecation is as a Package's.
	Deprecation string
	// Entries by name.
	Entries []*Entry
	// Chain are the entries from the head down what replaces what. Skipped ones
	// are not in it. Nil when Err is set.
	Chain []*Entry
	// Err says why the entries have no order: none or several heads, a cycle. Its
	// words are those that tools know.
	Err error
}

// Entry gives the entry of a bundle's name; nil when there is none.
func (c *Channel) Entry(name string) *Entry {
	i, ok := slices.BinarySearchFunc(c.Entries, name, func(e *Entry, name string) int { return strings.Compare(e.Bundle.Name, name) })
	if !ok {
		return nil
	}
	return c.Entries[i]
}

// Entry is the place of a bundle in a channel.
type Entry struct {
	Channel *Channel
	Bundle  *Bundle
	// Place is the position in the channel's Chain; negative for an entry that is
	// not on it.
	Place    int
	Replaces string
	Skips    []string
	// SkipRange is a range of versions that the bundle may be installed over;
	// empty for none.
	SkipRange string
}

// Bundle is one version of an operator.
type Bundle struct {
	Name string
	// Package it belongs to.
	Package *Package
	// Image is where the manifests are when they are not inline.
	Image string
	// Deprecation is as a Package's.
	Deprecation string
	// Subject is what the bundle is and provides.
	Subject constraint.Subject
	// Requires is what it needs of other operators.
	Requires []constraint.Constraint
	// Err says which property cannot be read, so that the bundle cannot be
	// chosen; nil when all can.
	Err error
}
