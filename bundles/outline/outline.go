package outline

import (
	"cmp"
	"slices"

	"github.com/blang/semver/v4"

	"github.com/chandlery/chandlery/bundles"
)

// Catalog is the outline of a catalog.
type Catalog struct {
	// Packages are in byte order of their names.
	Packages []*Package `json:"packages"`
}

// Package returns the package with a name, or nil.
func (c *Catalog) Package(name string) *Package {
	i, found := slices.BinarySearchFunc(c.Packages, name, func(p *Package, name string) int { return cmp.Compare(p.Name, name) })
	if !found {
		return nil
	}
	return c.Packages[i]
}

// Package is a package with its channels.
type Package struct {
	Name           string `json:"name"`
	DefaultChannel string `json:"defaultChannel"`
	// DisplayName and Provider come from the head of the default channel. They are empty if the
	// outline is not from an index.
	DisplayName string `json:"displayName,omitempty"`
	Provider    string `json:"provider,omitempty"`
	// Deprecation is the deprecation message; empty if the package is not deprecated. The same
	// holds for channels and entries.
	Deprecation string `json:"deprecation,omitempty"`
	// Channels are in byte order of their names.
	Channels []*Channel `json:"channels"`
}

// Channel returns the channel with a name, or nil.
func (p *Package) Channel(name string) *Channel {
	i, found := slices.BinarySearchFunc(p.Channels, name, func(c *Channel, name string) int { return cmp.Compare(c.Name, name) })
	if !found {
		return nil
	}
	return p.Channels[i]
}

// Bundles returns one entry for each bundle of the package with the names of its channels. It is
// sorted by version, highest first.
func (p *Package) Bundles() []Placed {
	at := make(map[string]int)
	var out []Placed
	for _, ch := range p.Channels {
		for _, e := range ch.Entries {
			i, seen := at[e.Name]
			if !seen {
				i = len(out)
				at[e.Name] = i
				out = append(out, Placed{Entry: e})
			}
			out[i].Channels = append(out[i].Channels, ch.Name)
		}
	}
	slices.SortFunc(out, func(a, b Placed) int {
		return cmp.Or(CompareVersions(b.Version, a.Version), cmp.Compare(b.Name, a.Name))
	})
	return out
}

// Placed is a bundle with its channels.
type Placed struct {
	*Entry

	Channels []string `json:"channels"`
}

// Channel is a channel with its entries.
type Channel struct {
	Name string `json:"name"`
	// Head is the entry that no other replaces or skips.
	Head        string `json:"head"`
	Deprecation string `json:"deprecation,omitempty"`
	// Entries are in byte order of their names.
	Entries []*Entry `json:"entries"`
}

// Entry returns the entry with a name, or nil.
func (c *Channel) Entry(name string) *Entry {
	i, found := slices.BinarySearchFunc(c.Entries, name, func(e *Entry, name string) int { return cmp.Compare(e.Name, name) })
	if !found {
		return nil
	}
	return c.Entries[i]
}

// Graph returns the upgrade graph of the channel as a type of package bundles.
func (c *Channel) Graph() *bundles.Channel {
	out := &bundles.Channel{Name: c.Name, Entries: make([]bundles.Entry, len(c.Entries))}
	for i, e := range c.Entries {
		out.Entries[i] = bundles.Entry{Name: e.Name, Replaces: e.Replaces, Skips: e.Skips, SkipRange: e.SkipRange}
	}
	return out
}

// Entry is a bundle in one channel.
type Entry struct {
	Name string `json:"name"`
	// Version is a semantic version.
	Version string `json:"version"`
	// Image is empty for bundles whose manifests are inline.
	Image       string             `json:"image,omitempty"`
	Replaces    string             `json:"replaces,omitempty"`
	Skips       []string           `json:"skips,omitempty"`
	SkipRange   string             `json:"skipRange,omitempty"`
	Deprecation string             `json:"deprecation,omitempty"`
	Provides    []bundles.GVK      `json:"provides,omitempty"`
	Requires    []bundles.GVK      `json:"requires,omitempty"`
	Properties  []bundles.Property `json:"properties,omitempty"`
	// Manifests is a digest of the bundle's manifests as the catalog serves them; empty if it was not requested.
	Manifests string `json:"-"`
}

// CompareVersions orders versions from low to high: semantic versions by their precedence, then by
// their text. Texts that are not semantic versions come first.
func CompareVersions(a, b string) int {
	va, errA := semver.Parse(a)
	vb, errB := semver.Parse(b)
	switch {
	case errA != nil && errB != nil:
		return cmp.Compare(a, b)
	case errA != nil:
		return -1
	case errB != nil:
		return 1
	}
	return cmp.Or(va.Compare(vb), cmp.Compare(a, b))
}
