// Package merge merges several catalogs into one. Objects that several catalogs have in the same
// form are kept once. Channels and deprecations are merged entry by entry. Differences are
// conflicts.
package merge

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/operator-framework/operator-registry/alpha/declcfg"

	"github.com/chandlery/chandlery/bundles"
	"github.com/chandlery/chandlery/bundles/authoring/render"
)

// Sources returns a source of everything that the sources hold. Its error for a package is
// [bundles.Problems] if they differ in an object of the package.
func Sources(sources ...render.Source) render.Source {
	return render.Changed(render.Joined(sources...), Package)
}

// Package merges the objects of a package from several catalogs.
func Package(cfg *declcfg.DeclarativeConfig) error {
	var m merger
	cfg.Packages = unique(&m, cfg.Packages, func(p *declcfg.Package) object { return object{pkg: p.Name, kind: p.Schema} })
	cfg.Bundles = unique(&m, cfg.Bundles, func(b *declcfg.Bundle) object { return object{b.Package, b.Schema, b.Name} })
	cfg.Channels = m.channels(cfg.Channels)
	cfg.Deprecations = m.deprecations(cfg.Deprecations)
	cfg.Others = m.others(cfg.Others)
	return m.problems.OrNil()
}

// object identifies an object of a catalog.
type object struct{ pkg, kind, name string }

type merger struct{ problems bundles.Problems }

// conflict records that catalogs differ in an object.
func (m *merger) conflict(o object, what string) {
	p := bundles.Problem{
		Package: o.pkg, Message: "the catalogs differ in " + what,
		Remedy: "leave one of them out with 'catalog prune', or make them alike",
	}
	switch o.kind {
	case declcfg.SchemaChannel:
		p.Channel = o.name
	case declcfg.SchemaBundle:
		p.Bundle = o.name
	}
	m.problems = append(m.problems, p)
}

// unique keeps each object once.
func unique[T any](m *merger, all []T, identify func(*T) object) []T {
	seen := map[object][]byte{}
	var out []T
	for i := range all {
		id := identify(&all[i])
		text := canonical(all[i])
		before, known := seen[id]
		switch {
		case !known:
			seen[id] = text
			out = append(out, all[i])
		case !bytes.Equal(before, text):
			m.conflict(id, "the "+id.kind+" object")
		}
	}
	return out
}

// canonical returns a value as JSON with sorted keys.
func canonical(value any) []byte {
	text, err := json.Marshal(value)
	if err != nil {
		return nil
	}
	var plain any
	if json.Unmarshal(text, &plain) != nil {
		return text
	}
	text, err = json.Marshal(plain)
	if err != nil {
		return nil
	}
	return text
}

func (m *merger) channels(all []declcfg.Channel) []declcfg.Channel {
	var out []declcfg.Channel
	for _, ch := range all {
		i := slices.IndexFunc(out, func(other declcfg.Channel) bool { return other.Name == ch.Name })
		if i < 0 {
			out = append(out, ch)
			continue
		}
		if !bytes.Equal(canonical(ch.Properties), canonical(out[i].Properties)) {
			m.conflict(object{ch.Package, declcfg.SchemaChannel, ch.Name}, "the properties of the channel")
		}
		out[i].Entries = joined(out[i].Entries, ch.Entries, func(e declcfg.ChannelEntry) string { return e.Name }, func(name string) {
			m.conflict(object{ch.Package, declcfg.SchemaChannel, ch.Name}, fmt.Sprintf("the entry %q", name))
		})
	}
	return out
}

func (m *merger) deprecations(all []declcfg.Deprecation) []declcfg.Deprecation {
	var out []declcfg.Deprecation
	for _, d := range all {
		if len(out) == 0 {
			out = append(out, d)
			continue
		}
		out[0].Entries = joined(out[0].Entries, d.Entries, func(e declcfg.DeprecationEntry) string {
			return e.Reference.Schema + " " + e.Reference.Name
		}, func(name string) {
			m.conflict(object{pkg: d.Package}, fmt.Sprintf("the deprecation of %q", name))
		})
	}
	return out
}

// joined returns the elements of two lists, each once.
func joined[T any](a, b []T, name func(T) string, differ func(string)) []T {
	out := slices.Clone(a)
	for _, element := range b {
		i := slices.IndexFunc(out, func(other T) bool { return name(other) == name(element) })
		switch {
		case i < 0:
			out = append(out, element)
		case !bytes.Equal(canonical(out[i]), canonical(element)):
			differ(name(element))
		}
	}
	return out
}

// others keeps each object of other schemas once. Such objects have no identity.
func (*merger) others(all []declcfg.Meta) []declcfg.Meta {
	seen := map[string]bool{}
	return slices.DeleteFunc(all, func(o declcfg.Meta) bool {
		text := string(canonical(o))
		again := seen[text]
		seen[text] = true
		return again
	})
}

// Check reads everything that a source holds and returns the problems of the catalog.
func Check(ctx context.Context, source render.Source) error {
	cfg, err := render.All(ctx, source)
	if err != nil {
		return err //nolint:wrapcheck // names the package
	}
	if err := render.LoadManifests(cfg); err != nil {
		return err //nolint:wrapcheck // names the bundle
	}
	if _, err := declcfg.ConvertToModel(*cfg); err != nil {
		return bundles.Problems{{Message: "the merged catalog is invalid: " + err.Error(), Remedy: "correct the catalogs that are merged"}}
	}
	return nil
}
