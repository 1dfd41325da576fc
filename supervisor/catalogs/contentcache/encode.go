package contentcache

import (
	"context"
	"encoding/json"

	"github.com/chandlery/chandlery/bundles"
	"github.com/chandlery/chandlery/supervisor/resolution/content"
)

// source is content as the source of an index. It omits channels without a single head, which the format cannot
// hold. Their versions cannot be chosen.
type source struct{ catalog *content.Catalog }

// Packages implements [index.Source].
func (s source) Packages() []string {
	all := s.catalog.Packages()
	names := make([]string, len(all))
	for i, p := range all {
		names[i] = p.Name
	}
	return names
}

// Size implements [index.Source].
func (s source) Size(name string) int64 {
	const perBundle = 4 << 10
	return int64(len(s.catalog.Package(name).Bundles)) * perBundle
}

// Problems implements [index.Source].
func (source) Problems() bundles.Problems { return nil }

// Package implements [index.Source].
func (s source) Package(_ context.Context, name string) (*bundles.Catalog, error) {
	in := s.catalog.Package(name)
	out := &bundles.Package{Name: in.Name, DefaultChannel: in.DefaultChannel}
	added := map[*content.Bundle]bool{}
	for _, c := range in.Channels {
		channel := channelOf(c)
		if _, err := channel.Head(); err != nil {
			continue
		}
		out.Channels = append(out.Channels, channel)
		for _, e := range c.Entries {
			if !added[e.Bundle] {
				added[e.Bundle] = true
				out.Bundles = append(out.Bundles, bundleOf(e.Bundle))
			}
		}
	}
	if len(out.Channels) == 0 {
		return &bundles.Catalog{}, nil
	}
	out.Deprecations = []bundles.DeprecationList{{Entries: deprecationsOf(in)}}
	return &bundles.Catalog{Packages: []*bundles.Package{out}}, nil
}

func channelOf(in *content.Channel) *bundles.Channel {
	out := &bundles.Channel{Name: in.Name, Package: in.Package.Name, Entries: make([]bundles.Entry, len(in.Entries))}
	for i, e := range in.Entries {
		out.Entries[i] = bundles.Entry{Name: e.Bundle.Name, Replaces: e.Replaces, Skips: e.Skips, SkipRange: e.SkipRange}
	}
	return out
}

func deprecationsOf(in *content.Package) []bundles.Deprecation {
	var list []bundles.Deprecation
	add := func(schema, name, message string) {
		if message != "" {
			list = append(list, bundles.Deprecation{Reference: bundles.Reference{Schema: schema, Name: name}, Message: message})
		}
	}
	add(bundles.SchemaPackage, "", in.Deprecation)
	for _, c := range in.Channels {
		add(bundles.SchemaChannel, c.Name, c.Deprecation)
	}
	for _, b := range in.Bundles {
		add(bundles.SchemaBundle, b.Name, b.Deprecation)
	}
	return list
}

func bundleOf(in *content.Bundle) *bundles.Bundle {
	out := &bundles.Bundle{Name: in.Name, Package: in.Package.Name, Image: in.Image, Properties: propertiesOf(in)}
	err := in.Err
	if err == nil {
		_, err = bundles.ParseProperties(out.Properties)
	}
	if err != nil {
		out.Properties = unusable(in.Package.Name, err)
	}
	return out
}

// propertiesOf returns the properties of a bundle with exactly one of type olm.package, which the format requires.
func propertiesOf(in *content.Bundle) []bundles.Property {
	list := make([]bundles.Property, 0, len(in.Subject.Properties)+1)
	named := false
	for _, p := range in.Subject.Properties {
		if p.Type == bundles.TypePackage {
			if named {
				continue
			}
			named = true
		}
		list = append(list, bundles.Property{Type: p.Type, Value: json.RawMessage(p.Value)})
	}
	if !named {
		list = append(list, packageProperty(in.Package.Name))
	}
	return list
}

// unusable returns properties that make a bundle unusable when they are read: an unknown field of a constraint, whose
// name is in the error.
func unusable(pkg string, err error) []bundles.Property {
	const maxText = 1 << 10
	field := map[string]string{bundles.Clip(err.Error(), maxText): ""}
	return []bundles.Property{packageProperty(pkg), newProperty(bundles.TypeConstraint, field)}
}

// packageProperty returns a property without a version, as in a bundle without the property.
func packageProperty(pkg string) bundles.Property {
	return newProperty(bundles.TypePackage, bundles.PackageProperty{PackageName: pkg})
}

func newProperty(kind string, value any) bundles.Property {
	text, err := json.Marshal(value)
	if err != nil {
		text = []byte("null") // strings can always be encoded
	}
	return bundles.Property{Type: kind, Value: text}
}
