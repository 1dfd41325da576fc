package content

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/chandlery/chandlery/bundles"
	"github.com/chandlery/chandlery/supervisor/resolution/constraint"
)

// ChannelEntry is one channel entry: a bundle with its position in a channel.
type ChannelEntry struct {
	Package, Channel, Bundle string
	// Version is the version of the bundle. It is used for old catalogs whose properties lack it.
	Version     string
	Image       string
	Replaces    string
	Skips       []string
	SkipRange   string
	Deprecation string
	Properties  []constraint.Property
}

// Builder builds a Catalog from the entries of a server, in any order.
type Builder struct {
	limit, size int64
	packages    map[string]*packageBuilder
	interner    interner
}

// packageBuilder builds a package from its channel entries.
type packageBuilder struct {
	owner                       *constraint.Owner
	defaultChannel, deprecation string
	channels                    map[string]*Channel
	bundles                     map[string]*Bundle
	channelDeprecations         map[string]string
	bundleDeprecations          map[string]string
}

// NewBuilder returns a Builder that rejects more than limit bytes, as Catalog.Bytes counts them.
func NewBuilder(limit int64) *Builder {
	return &Builder{limit: limit, packages: map[string]*packageBuilder{}, interner: newInterner()}
}

var errTooLarge = errors.New("the catalog is too large")

// Add adds a channel entry. For duplicates, the first one counts. Add returns an error if the
// catalog is too large.
func (b *Builder) Add(l ChannelEntry) error {
	d := b.packageBuilder(l.Package)
	bundle := d.bundles[l.Bundle]
	if bundle == nil {
		bundle = b.bundle(l)
		d.bundles[bundle.Name] = bundle
		b.size += bundleBytes
	}
	if l.Deprecation != "" && d.bundleDeprecations[bundle.Name] == "" {
		d.bundleDeprecations[bundle.Name] = b.interner.text(l.Deprecation)
	}
	channel := d.channels[l.Channel]
	if channel == nil {
		channel = &Channel{Name: b.interner.text(l.Channel)}
		d.channels[channel.Name] = channel
		b.size += channelBytes
	}
	channel.Entries = append(channel.Entries, &Entry{
		Channel: channel, Bundle: bundle,
		Replaces: b.interner.text(l.Replaces), SkipRange: b.interner.text(l.SkipRange), Skips: b.interner.texts(l.Skips),
	})
	b.size += entryBytes + 2*word*int64(len(bundle.Subject.GVKs)+len(bundle.Subject.Labels))
	if size := b.size + b.interner.bytes(); size > b.limit {
		return fmt.Errorf("%w: its content takes more than %d bytes of memory, the limit for one catalog; divide its packages among several catalogs",
			errTooLarge, b.limit)
	}
	return nil
}

// bundle creates the Bundle of a channel entry.
func (b *Builder) bundle(l ChannelEntry) *Bundle {
	bundle := &Bundle{Name: b.interner.text(l.Bundle), Image: b.interner.text(l.Image)}
	bundle.Subject, bundle.Requires, bundle.Err = b.interner.parse(l.Package, b.packageBuilder(l.Package).owner, withPackage(l))
	if bundle.Err == nil && bundle.Subject.Package != "" && bundle.Subject.Package != l.Package {
		bundle.Err = fmt.Errorf("property %s says that it is of package %s; ask the publisher of the catalog to fix it",
			bundles.TypePackage, bundles.Quote(bundle.Subject.Package))
	}
	if bundle.Err != nil {
		bundle.Err = unusable(l.Package, l.Bundle, bundle.Err)
	}
	bundle.Subject.Package = b.interner.text(l.Package)
	return bundle
}

// unusable wraps err with the names of the package and the bundle.
func unusable(pkg, bundle string, err error) error {
	return fmt.Errorf("package %s, bundle %s: %w", bundles.Quote(pkg), bundles.Quote(bundle), err)
}

// withPackage returns the properties of a bundle. It adds the package property if a catalog omits
// it.
func withPackage(l ChannelEntry) []constraint.Property {
	given := slices.ContainsFunc(l.Properties, func(p constraint.Property) bool { return p.Type == bundles.TypePackage })
	if given || l.Version == "" {
		return l.Properties
	}
	value, err := json.Marshal(bundles.PackageProperty{PackageName: l.Package, Version: l.Version})
	if err != nil {
		// Strings always marshal. Without the property, the bundle only lacks its package and
		// version.
		return l.Properties
	}
	return append(slices.Clone(l.Properties), constraint.Property{Type: bundles.TypePackage, Value: string(value)})
}

// Describe sets the default channel and the deprecation of a package.
func (b *Builder) Describe(pkg, defaultChannel, deprecation string) {
	d := b.packageBuilder(pkg)
	d.defaultChannel, d.deprecation = b.interner.text(defaultChannel), b.interner.text(deprecation)
}

// DeprecateChannel sets the deprecation of a channel.
func (b *Builder) DeprecateChannel(pkg, channel, message string) {
	b.packageBuilder(pkg).channelDeprecations[channel] = b.interner.text(message)
}

// DeprecateBundle sets the deprecation of a bundle.
func (b *Builder) DeprecateBundle(pkg, bundle, message string) {
	b.packageBuilder(pkg).bundleDeprecations[bundle] = b.interner.text(message)
}

func (b *Builder) packageBuilder(name string) *packageBuilder {
	if b.packages[name] == nil {
		b.size += packageBytes
		b.packages[b.interner.text(name)] = &packageBuilder{
			owner: new(constraint.Owner), channels: map[string]*Channel{}, bundles: map[string]*Bundle{},
			channelDeprecations: map[string]string{}, bundleDeprecations: map[string]string{},
		}
	}
	return b.packages[name]
}

// Build returns the Catalog. It omits packages without channels, because resolution cannot choose
// their bundles.
func (b *Builder) Build() *Catalog {
	c := &Catalog{byGVK: map[bundles.GVK][]*Entry{}, byLabel: map[string][]*Entry{}}
	for name, d := range b.packages {
		if len(d.channels) > 0 {
			c.packages = append(c.packages, d.build(b.interner.text(name)))
		}
	}
	slices.SortFunc(c.packages, func(x, y *Package) int { return strings.Compare(x.Name, y.Name) })
	c.index()
	c.size = b.size + b.interner.bytes()
	return c
}

func (d *packageBuilder) build(name string) *Package {
	p := &Package{
		Name: name, DefaultChannel: d.defaultChannel, Deprecation: d.deprecation,
		Bundles: make([]*Bundle, 0, len(d.bundles)), Channels: make([]*Channel, 0, len(d.channels)),
	}
	for _, bundle := range d.bundles {
		bundle.Package, bundle.Deprecation = p, d.bundleDeprecations[bundle.Name]
		p.Bundles = append(p.Bundles, bundle)
	}
	slices.SortFunc(p.Bundles, func(x, y *Bundle) int { return strings.Compare(x.Name, y.Name) })
	for _, channel := range d.channels {
		channel.Package, channel.Deprecation = p, d.channelDeprecations[channel.Name]
		channel.setChain()
		p.Channels = append(p.Channels, channel)
	}
	slices.SortFunc(p.Channels, func(x, y *Channel) int { return strings.Compare(x.Name, y.Name) })
	return p
}

// index fills the maps from APIs and labels to the entries whose bundles provide them.
func (c *Catalog) index() {
	for _, p := range c.packages {
		for _, channel := range p.Channels {
			for _, entry := range channel.Entries {
				if entry.Bundle.Err == nil {
					c.indexEntry(entry)
				}
			}
		}
	}
}

func (c *Catalog) indexEntry(entry *Entry) {
	for _, gvk := range entry.Bundle.Subject.GVKs {
		c.byGVK[gvk] = append(c.byGVK[gvk], entry)
	}
	for _, label := range entry.Bundle.Subject.Labels {
		if listed := c.byLabel[label]; len(listed) == 0 || listed[len(listed)-1] != entry {
			c.byLabel[label] = append(listed, entry)
		}
	}
}
