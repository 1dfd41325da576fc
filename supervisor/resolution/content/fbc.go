package content

import (
	"errors"

	"github.com/chandlery/chandlery/bundles"
	"github.com/chandlery/chandlery/supervisor/resolution/constraint"
)

// FromCatalog builds a Catalog from a file-based catalog. It omits properties that resolution does
// not need, such as manifests.
func FromCatalog(c *bundles.Catalog) (*Catalog, error) {
	const unlimited = 1 << 62
	b := NewBuilder(unlimited)
	for _, p := range c.Packages {
		if err := b.addPackage(p); err != nil {
			return nil, err
		}
	}
	return b.Build(), nil
}

func (b *Builder) addPackage(p *bundles.Package) error {
	byName := make(map[string]*bundles.Bundle, len(p.Bundles))
	for _, bundle := range p.Bundles {
		byName[bundle.Name] = bundle
	}
	deprecation, _ := p.Deprecated(bundles.SchemaPackage, "")
	b.Describe(p.Name, p.DefaultChannel, deprecation)
	b.deprecate(p)
	for _, channel := range p.Channels {
		for _, entry := range channel.Entries {
			bundle, ok := byName[entry.Name]
			if !ok {
				bundle = &bundles.Bundle{}
			}
			err := b.Add(ChannelEntry{
				Package: p.Name, Channel: channel.Name, Bundle: entry.Name, Image: bundle.Image,
				Replaces: entry.Replaces, Skips: entry.Skips, SkipRange: entry.SkipRange, Properties: propertiesOf(bundle),
			})
			if err != nil {
				return err
			}
			if !ok {
				b.packages[p.Name].bundles[entry.Name].Err = unusable(p.Name, entry.Name, errNoBundle)
			}
		}
	}
	return nil
}

// deprecate adds the deprecations of channels and bundles.
func (b *Builder) deprecate(p *bundles.Package) {
	for _, list := range p.Deprecations {
		for _, entry := range list.Entries {
			switch entry.Reference.Schema {
			case bundles.SchemaChannel:
				b.DeprecateChannel(p.Name, entry.Reference.Name, entry.Message)
			case bundles.SchemaBundle:
				b.DeprecateBundle(p.Name, entry.Reference.Name, entry.Message)
			}
		}
	}
}

var errNoBundle = errors.New("a channel lists it but the package does not have it; ask the publisher of the catalog to fix it")

// propertiesOf returns the properties of a bundle. It leaves the values of unneeded properties
// empty to avoid copying them.
func propertiesOf(bundle *bundles.Bundle) []constraint.Property {
	out := make([]constraint.Property, len(bundle.Properties))
	for i, p := range bundle.Properties {
		out[i].Type = p.Type
		if !unneeded(p.Type, len(p.Value)) {
			out[i].Value = string(p.Value)
		}
	}
	return out
}
