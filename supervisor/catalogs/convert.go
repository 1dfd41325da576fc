package catalogs

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/chandlery/chandlery/bundles"
	"github.com/chandlery/chandlery/proto/api"
	registryv1 "github.com/chandlery/chandlery/proto/chandlery/registry/v1"
	"github.com/chandlery/chandlery/supervisor/catalogs/content"
	"github.com/chandlery/chandlery/supervisor/resolver/constraint"
)

// listedBundle puts a channel entry of api.Registry into the terms of content.
func listedBundle(b *api.Bundle) content.Listed {
	said := statements[*api.GroupVersionKind, *api.Property, *api.Dependency]{
		provided: b.GetProvidedApis(), required: b.GetRequiredApis(),
		properties: b.GetProperties(), dependencies: b.GetDependencies(),
	}
	return content.Listed{
		Package: b.GetPackageName(), Channel: b.GetChannelName(), Bundle: b.GetCsvName(), Version: b.GetVersion(), Image: b.GetBundlePath(),
		Replaces: b.GetReplaces(), Skips: b.GetSkips(), SkipRange: b.GetSkipRange(),
		Deprecation: deprecationOf(b.GetDeprecation()), Properties: said.all(),
	}
}

// pagedBundle puts a channel entry of the extension API into the terms of content.
func pagedBundle(b *registryv1.Bundle) content.Listed {
	said := statements[*registryv1.GroupVersionKind, *registryv1.Property, *registryv1.Dependency]{
		provided: b.GetProvidedApis(), required: b.GetRequiredApis(),
		properties: b.GetProperties(), dependencies: b.GetDependencies(),
	}
	l := content.Listed{
		Package: b.GetPackage(), Channel: b.GetChannel(), Bundle: b.GetName(), Version: b.GetVersion(), Image: b.GetImage(),
		Replaces: b.GetReplaces(), Skips: b.GetSkips(), SkipRange: b.GetSkipRange(), Properties: said.all(),
	}
	if d := b.GetDeprecation(); d != nil {
		l.Deprecation = deprecationText(d.GetMessage())
	}
	return l
}

// identified is an API, in either of the two contracts.
type identified interface {
	GetGroup() string
	GetVersion() string
	GetKind() string
}

// typed is a property or dependency, in either of the two contracts.
type typed interface {
	GetType() string
	GetValue() string
}

// statements are what the message of a bundle states: as properties and, in forms
// that are older than these, in other fields.
type statements[G identified, P, D typed] struct {
	provided, required []G
	properties         []P
	dependencies       []D
}

// maxStatements bounds what one bundle states: each statement costs time wherever
// the bundle is looked at.
const maxStatements = 4096

// all gives everything as properties. The older forms count where today's resolver
// lets them count: provided APIs when there are no properties at all, required APIs
// when there are no dependencies. What is stated twice is there once. Properties
// that carry manifests are left out.
func (s statements[G, P, D]) all() []constraint.Property {
	out := make([]constraint.Property, 0, min(len(s.properties)+1, maxStatements))
	for _, p := range s.properties {
		if p.GetType() == bundles.TypeBundleObject || p.GetType() == bundles.TypeCSVMetadata {
			continue
		}
		if len(out) == maxStatements {
			return overfull()
		}
		out = append(out, constraint.Property{Type: p.GetType(), Value: p.GetValue()})
	}
	if len(s.properties) > 0 {
		s.provided = nil
	}
	if len(s.dependencies) > 0 {
		s.required = nil
	}
	if len(out)+len(s.provided)+len(s.required)+len(s.dependencies) > maxStatements {
		return overfull()
	}
	for _, g := range s.provided {
		out = append(out, property(bundles.TypeGVK, gvkOf(g)))
	}
	return append(out, s.more(out)...)
}

// more gives the requirements that are not among the properties. Registries state
// the same one as a property, as a dependency and as a required API.
func (s statements[G, P, D]) more(stated []constraint.Property) []constraint.Property {
	if len(s.required) == 0 && len(s.dependencies) == 0 {
		return nil
	}
	known := make(map[constraint.Property]bool, len(stated)+len(s.required)+len(s.dependencies))
	for _, p := range stated {
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
		include(property(bundles.TypeGVKRequired, gvkOf(g)))
	}
	for _, d := range s.dependencies {
		include(requirement(d.GetType(), d.GetValue()))
	}
	return out
}

// overfull stands for what is stated by a bundle that states too much: a constraint
// that cannot be read, in words that are told to whoever wants the bundle.
func overfull() []constraint.Property {
	problem := fmt.Sprintf("more than %d properties and dependencies", maxStatements)
	return []constraint.Property{property(bundles.TypeConstraint, map[string]string{problem: ""})}
}

func gvkOf(g identified) bundles.GVK {
	return bundles.GVK{Group: g.GetGroup(), Version: g.GetVersion(), Kind: g.GetKind()}
}

// property makes a property with a value that consists of strings.
func property(kind string, value any) constraint.Property {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false) // ranges of versions are full of < and >
	if err := encoder.Encode(value); err != nil {
		// Strings always marshal; what is empty cannot be read, which is told then.
		text.Reset()
	}
	return constraint.Property{Type: kind, Value: strings.TrimSuffix(text.String(), "\n")}
}

// requirement gives the property that a dependency stands for. The value of one
// that cannot be read is kept: whoever wants the bundle is told then.
func requirement(kind, value string) constraint.Property {
	switch kind {
	case bundles.TypeGVK:
		return constraint.Property{Type: bundles.TypeGVKRequired, Value: value}
	case bundles.TypePackage:
		var wanted struct {
			PackageName string `json:"packageName"`
			Version     string `json:"version"`
		}
		if err := json.Unmarshal([]byte(value), &wanted); err != nil {
			return constraint.Property{Type: bundles.TypePackageRequired, Value: value}
		}
		return property(bundles.TypePackageRequired, bundles.PackageRequired{PackageName: wanted.PackageName, VersionRange: wanted.Version})
	case bundles.TypeLabel:
		return constraint.Property{Type: bundles.TypeLabelRequired, Value: value}
	case bundles.TypeConstraint:
		return constraint.Property{Type: kind, Value: value}
	default:
		// Nobody could meet what nobody knows. A constraint of a type that is not
		// known cannot be read, which is told to whoever wants the bundle.
		return property(bundles.TypeConstraint, map[string]string{"failureMessage": "dependency of the unknown type " + kind, kind: value})
	}
}

// canonical gives a requirement with its value in the one way in which it is
// written here; as it is when it cannot be read.
func canonical(p constraint.Property) constraint.Property {
	var value any
	switch p.Type {
	case bundles.TypeGVKRequired:
		value = &bundles.GVK{}
	case bundles.TypePackageRequired:
		value = &bundles.PackageRequired{}
	default:
		return p
	}
	if err := json.Unmarshal([]byte(p.Value), value); err != nil {
		return p
	}
	return property(p.Type, value)
}
