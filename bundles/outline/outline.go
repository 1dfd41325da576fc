package outline

import (
	"cmp"
	"slices"

	"github.com/blang/semver/v4"

	"github.com/chandlery/chandlery/bundles"
)

// Catalog is the outline of a catalog.
type Catalog struct {
	// Packages in byte order of their names.
	Packages []*Package `json:"packages"`
}

// Package returns the package of that name, or nil.
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
	// DisplayName and Provider are what the head of the default channel says
	// about itself; empty when the outline is not from an index.
	DisplayName string `json:"displayName,omitempty"`
	Provider    string `json:"provider,omitempty"`
	// Deprecation is why the package should no longer be used; empty when it is
	// not deprecated. The same holds for channels and entries.
	Deprecation string `json:"deprecation,omitempty"`
	// Channels in byte order of their names.
	Channels []*Channel `json:"channels"`
}

// Channel returns the channel of that name, or nil.
func (p *Package) Channel(name string) *Channel {
	i, found := slices.BinarySearchFunc(p.Channels, name, func(c *Channel, name string) int { return cmp.Compare(c.Name, name) })
	if !found {
		return nil
	}
	return p.Channels[i]
}

// Bundles returns one entry for each bundle of the package, with the names of
// the channels that it is in, in the order of their versions, the highest first.
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

// Placed is a bundle and the channels that it is in.
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
	// Entries in byte order of their names.
	Entries []*Entry `json:"entries"`
}

// Entry returns the entry of that name, or nil.
func (c *Channel) Entry(name string) *Entry {
	i, found := slices.BinarySearchFunc(c.Entries, name, func(e *Entry, name string) int { return cmp.Compare(e.Name, name) })
	if !found {
		return nil
	}
	return c.Entries[i]
}

// Graph returns the upgrade graph of the channel as package bundles knows it.
func (c *Channel) Graph() *bundles.Channel {
	out := &bundles.Channel{Name: c.Name, Entries: make([]bundles.Entry, len(c.Entries))}
	for i, e := range c.Entries {
		out.Entries[i] = bundles.Entry{Name: e.Name, Replaces: e.Replaces, Skips: e.Skips, SkipRange: e.SkipRange}
	}
	return out
}

// Entry is a bundle as one channel presents it.
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
	// Manifests is a digest of the bundle's manifests as the catalog serves
	// them; empty when it was not asked for.
	Manifests string `json:"-"`
}

// CompareVersions orders versions from low to high: semantic versions by their
// precedence, then by their text; what is no semantic version comes first.
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
