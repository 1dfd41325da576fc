package catalogs

import (
	"encoding/json"
	"fmt"

	"github.com/operator-framework/operator-registry/alpha/property"

	"github.com/chandlery/chandlery/bundles"
	"github.com/chandlery/chandlery/proto/api"
	registryv1 "github.com/chandlery/chandlery/proto/chandlery/registry/v1"
	"github.com/chandlery/chandlery/supervisor/resolution/constraint"
	"github.com/chandlery/chandlery/supervisor/resolution/content"
)

// listedBundle converts a channel entry of api.Registry.
func listedBundle(b *api.Bundle) content.ChannelEntry {
	properties := bundleProperties[*api.GroupVersionKind, *api.Property, *api.Dependency]{
		provided: b.GetProvidedApis(), required: b.GetRequiredApis(),
		properties: b.GetProperties(), dependencies: b.GetDependencies(),
	}
	return content.ChannelEntry{
		Package: b.GetPackageName(), Channel: b.GetChannelName(), Bundle: b.GetCsvName(), Version: b.GetVersion(), Image: b.GetBundlePath(),
		Replaces: b.GetReplaces(), Skips: b.GetSkips(), SkipRange: b.GetSkipRange(),
		Deprecation: deprecationOf(b.GetDeprecation()), Properties: properties.all(),
	}
}

// pagedBundle converts a channel entry of the extension API.
func pagedBundle(b *registryv1.Bundle) content.ChannelEntry {
	properties := bundleProperties[*registryv1.GroupVersionKind, *registryv1.Property, *registryv1.Dependency]{
		provided: b.GetProvidedApis(), required: b.GetRequiredApis(),
		properties: b.GetProperties(), dependencies: b.GetDependencies(),
	}
	l := content.ChannelEntry{
		Package: b.GetPackage(), Channel: b.GetChannel(), Bundle: b.GetName(), Version: b.GetVersion(), Image: b.GetImage(),
		Replaces: b.GetReplaces(), Skips: b.GetSkips(), SkipRange: b.GetSkipRange(), Properties: properties.all(),
	}
	if d := b.GetDeprecation(); d != nil {
		l.Deprecation = deprecationText(d.GetMessage())
	}
	return l
}

// groupVersionKind is an API in either of the two contracts.
type groupVersionKind interface {
	GetGroup() string
	GetVersion() string
	GetKind() string
}

// typedValue is a property or a dependency in either of the two contracts.
type typedValue interface {
	GetType() string
	GetValue() string
}

// bundleProperties holds the properties and dependencies in the message of a bundle: as properties
// and, in older forms, in other fields.
type bundleProperties[G groupVersionKind, P, D typedValue] struct {
	provided, required []G
	properties         []P
	dependencies       []D
}

// maxProperties limits the number of properties of one bundle. Each of them costs time in every
// resolution.
const maxProperties = 4096

// all returns them as properties, without duplicates and without manifests. It uses the
// older forms as OLM's resolver does: provided APIs only without any property, and required APIs
// only without any dependency.
func (s bundleProperties[G, P, D]) all() []constraint.Property {
	out := make([]constraint.Property, 0, min(len(s.properties)+1, maxProperties))
	for _, p := range s.properties {
		if p.GetType() == bundles.TypeBundleObject || p.GetType() == bundles.TypeCSVMetadata {
			continue
		}
		if len(out) == maxProperties {
			return tooManyProperties()
		}
		out = append(out, constraint.Property{Type: p.GetType(), Value: p.GetValue()})
	}
	if len(s.properties) > 0 {
		s.provided = nil
	}
	if len(s.dependencies) > 0 {
		s.required = nil
	}
	if len(out)+len(s.provided)+len(s.required)+len(s.dependencies) > maxProperties {
		return tooManyProperties()
	}
	for _, g := range s.provided {
		out = append(out, newProperty(&property.GVK{Group: g.GetGroup(), Version: g.GetVersion(), Kind: g.GetKind()}))
	}
	return append(out, s.additional(out)...)
}

// additional returns the requirements that are not present. Registries send the same requirement as a
// property, as a dependency and as a required API.
func (s bundleProperties[G, P, D]) additional(present []constraint.Property) []constraint.Property {
	if len(s.required) == 0 && len(s.dependencies) == 0 {
		return nil
	}
	known := make(map[constraint.Property]bool, len(present)+len(s.required)+len(s.dependencies))
	for _, p := range present {
		known[canonical(p)] = true
	}
	var out []constraint.Property
	include := func(p constraint.Property) {
		if key := canonical(p); !known[key] {
			known[key] = true
			out = append(out, p)
		}
	}
	for _, g := range s.required {
		include(newProperty(&property.GVKRequired{Group: g.GetGroup(), Version: g.GetVersion(), Kind: g.GetKind()}))
	}
	for _, d := range s.dependencies {
		include(requirement(d.GetType(), d.GetValue()))
	}
	return out
}

// tooManyProperties returns a replacement for the properties of a bundle that has too many. It is an
// unreadable constraint, and its field name appears in the resolver's error.
func tooManyProperties() []constraint.Property {
	problem := fmt.Sprintf("more than %d properties and dependencies", maxProperties)
	return []constraint.Property{unreadable(map[string]string{problem: ""})}
}

// newProperty returns a property of a type that operator-registry knows.
func newProperty(value any) constraint.Property {
	p, err := property.Build(value)
	if err != nil {
		// Strings can always be encoded. A constraint without a value is unreadable.
		return constraint.Property{Type: bundles.TypeConstraint}
	}
	return constraint.Property{Type: p.Type, Value: string(p.Value)}
}

// unreadable returns a constraint with unknown fields, which the parser rejects.
func unreadable(fields map[string]string) constraint.Property {
	text, err := json.Marshal(fields)
	if err != nil {
		text = nil // as in newProperty
	}
	return constraint.Property{Type: bundles.TypeConstraint, Value: string(text)}
}

// decodeProperty decodes a property of a type that operator-registry knows.
func decodeProperty(kind, value string) (*property.Properties, error) {
	return property.Parse([]property.Property{{Type: kind, Value: json.RawMessage(value)}})
}

// requirement converts a dependency to a property. It keeps an unreadable value, so that resolution
// reports it for a bundle that is requested.
func requirement(kind, value string) constraint.Property {
	switch kind {
	case bundles.TypeGVK:
		return constraint.Property{Type: bundles.TypeGVKRequired, Value: value}
	case bundles.TypePackage:
		// The version of a package dependency is a range.
		wanted, err := decodeProperty(kind, value)
		if err != nil {
			return constraint.Property{Type: bundles.TypePackageRequired, Value: value}
		}
		return newProperty(&property.PackageRequired{PackageName: wanted.Packages[0].PackageName, VersionRange: wanted.Packages[0].Version})
	case bundles.TypeLabel:
		return constraint.Property{Type: bundles.TypeLabelRequired, Value: value}
	case bundles.TypeConstraint:
		return constraint.Property{Type: kind, Value: value}
	default:
		// No bundle can satisfy a dependency of an unknown type. The parser rejects the constraint,
		// and resolution reports it for a bundle that is requested.
		return unreadable(map[string]string{"failureMessage": "dependency of the unknown type " + kind, kind: value})
	}
}

// canonical returns a requirement with its value in canonical encoding. It returns an unreadable
// requirement unchanged.
func canonical(p constraint.Property) constraint.Property {
	if p.Type != bundles.TypeGVKRequired && p.Type != bundles.TypePackageRequired {
		return p
	}
	decoded, err := decodeProperty(p.Type, p.Value)
	switch {
	case err != nil:
		return p
	case p.Type == bundles.TypeGVKRequired:
		return newProperty(&decoded.GVKsRequired[0])
	default:
		return newProperty(&decoded.PackagesRequired[0])
	}
}
