package resolution_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/blang/semver/v4"

	"github.com/chandlery/chandlery/bundles"
	"github.com/chandlery/chandlery/supervisor/resolution"
	"github.com/chandlery/chandlery/supervisor/resolution/constraint"
	"github.com/chandlery/chandlery/supervisor/resolution/content"
)

// The catalogs of the cases: Subscriptions name shop.
var (
	shop   = resolution.CatalogKey{Namespace: "olm", Name: "shop"}
	market = resolution.CatalogKey{Namespace: "home", Name: "market"}
	bazaar = resolution.CatalogKey{Namespace: "olm", Name: "bazaar"}
)

// pack is a package for a catalog.
type pack struct {
	name, defaultChannel string
	channels             []lane
	properties           map[string][]constraint.Property
	withoutVersion       bool
}

// lane is a channel for a package.
type lane struct {
	name    string
	entries []content.ChannelEntry
}

// of returns a package with its channels, the first of which is the default one.
func of(name string, channels ...lane) pack {
	return pack{name: name, defaultChannel: channels[0].name, channels: channels, properties: map[string][]constraint.Property{}}
}

// with adds properties to a bundle of the package.
func (p pack) with(bundle string, properties ...constraint.Property) pack {
	p.properties[bundle] = append(p.properties[bundle], properties...)
	return p
}

// byDefault sets the default channel, which need not exist.
func (p pack) byDefault(channel string) pack {
	p.defaultChannel = channel
	return p
}

// lone returns a package of one version.
func lone(name string, properties ...constraint.Property) pack {
	return of(name, in("stable", at(name+".v1.0.0"))).with(name+".v1.0.0", properties...)
}

// in returns a channel.
func in(channel string, entries ...content.ChannelEntry) lane {
	return lane{name: channel, entries: entries}
}

// at returns an entry. The words are the versions that it replaces and skips, and after "range" the range that
// it may be installed over.
func at(bundle string, words ...string) content.ChannelEntry {
	entry := content.ChannelEntry{Bundle: bundle}
	for i := 0; i < len(words); i += 2 {
		switch words[i] {
		case "replaces":
			entry.Replaces = words[i+1]
		case "skips":
			entry.Skips = append(entry.Skips, words[i+1])
		case "range":
			entry.SkipRange = words[i+1]
		default:
			panic(words[i])
		}
	}
	return entry
}

// line returns a channel of entries each of which replaces the previous one.
func line(channel string, entries ...string) lane {
	out := lane{name: channel}
	for i, name := range entries {
		entry := at(name)
		if i > 0 {
			entry.Replaces = entries[i-1]
		}
		out.entries = append(out.entries, entry)
	}
	return out
}

// versionOf returns the part of a bundle's name after its package.
func versionOf(bundle string) string {
	_, version, _ := strings.Cut(bundle, ".v")
	return version
}

func prop(kind, value string) constraint.Property {
	return constraint.Property{Type: kind, Value: value}
}

func asJSON(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return string(text)
}

func gvk(kind string) bundles.GVK { return bundles.GVK{Group: "g.example", Version: "v1", Kind: kind} }

func bringing(kind string) constraint.Property { return prop("olm.gvk", asJSON(gvk(kind))) }
func needing(kind string) constraint.Property  { return prop("olm.gvk.required", asJSON(gvk(kind))) }

func labelled(label string) constraint.Property {
	return prop("olm.label", asJSON(map[string]string{"label": label}))
}

func needingLabel(label string) constraint.Property {
	return prop("olm.label.required", asJSON(map[string]string{"label": label}))
}

func needingPackage(name, versions string) constraint.Property {
	return prop("olm.package.required", asJSON(bundles.PackageRequired{PackageName: name, VersionRange: versions}))
}

// compound and the functions below return the JSON of olm.constraint properties.
func compound(operator string, members ...string) string {
	return fmt.Sprintf(`{%q:{"constraints":[%s]}}`, operator, strings.Join(members, ","))
}

func ofGVK(kind string) string { return `{"gvk":` + asJSON(gvk(kind)) + `}` }
func ofPackage(name, versions string) string {
	return `{"package":` + asJSON(bundles.PackageRequired{PackageName: name, VersionRange: versions}) + `}`
}

func ofRule(text string) string { return `{"cel":` + asJSON(map[string]string{"rule": text}) + `}` }

func constrained(text string) constraint.Property { return prop("olm.constraint", text) }

// build returns the content of a catalog.
func build(packs ...pack) *content.Catalog {
	const plenty = 1 << 30
	b := content.NewBuilder(plenty)
	for _, p := range packs {
		b.Describe(p.name, p.defaultChannel, "")
		for _, channel := range p.channels {
			for _, l := range channel.entries {
				l.Package, l.Channel, l.Properties = p.name, channel.name, p.properties[l.Bundle]
				if !p.withoutVersion {
					l.Version = versionOf(l.Bundle)
				}
				if err := b.Add(l); err != nil {
					panic(err)
				}
			}
		}
	}
	return b.Build()
}

// there returns a present operator, with the package and version in its name.
func there(name string, properties ...constraint.Property) resolution.Operator {
	pkg, version, _ := strings.Cut(name, ".v")
	return stray(name, append(properties, prop("olm.package", asJSON(bundles.PackageProperty{PackageName: pkg, Version: version})))...)
}

// stray returns a present operator with only the given properties.
func stray(name string, properties ...constraint.Property) resolution.Operator {
	subject, requires, err := constraint.Parse(properties)
	if err != nil {
		panic(err)
	}
	return resolution.Operator{Name: name, Subject: subject, Requires: requires}
}

// sub returns a Subscription to a package of the shop.
func sub(pkg string, changes ...func(*resolution.Subscription)) resolution.Subscription {
	s := resolution.Subscription{Name: "my-" + pkg, Catalog: shop, Package: pkg}
	for _, change := range changes {
		change(&s)
	}
	return s
}

func channel(name string) func(*resolution.Subscription) {
	return func(s *resolution.Subscription) { s.Channel = name }
}

func starting(csv string) func(*resolution.Subscription) {
	return func(s *resolution.Subscription) { s.StartingCSV = csv }
}

func installed(csv string) func(*resolution.Subscription) {
	return func(s *resolution.Subscription) { s.Installed, s.OwnsInstalled = csv, true }
}

func from(key resolution.CatalogKey) func(*resolution.Subscription) {
	return func(s *resolution.Subscription) { s.Catalog = key }
}

func called(name string) func(*resolution.Subscription) {
	return func(s *resolution.Subscription) { s.Name = name }
}

// brief returns a solution in few words: catalog, channel and bundle of each installation, and its dependencies.
func brief(s resolution.Solution) map[string]string {
	out := map[string]string{}
	for name, outcome := range s {
		var words []string
		if c := outcome.Install; c != nil {
			words = append(words, c.Catalog.Name+"/"+c.Channel+"/"+c.Bundle)
		}
		for _, c := range outcome.Dependencies {
			words = append(words, "+"+c.Catalog.Name+"/"+c.Channel+"/"+c.Bundle)
		}
		if outcome.Constrained != nil {
			words = append(words, "held")
		}
		if outcome.Err != nil {
			words = append(words, "failed")
		}
		out[name] = strings.Join(words, " ")
	}
	return out
}

// final is the content of a namespace after a solution was applied.
type final struct {
	subjects []*constraint.Subject
	// isNew reports for each version whether the solution installs it.
	isNew    []bool
	requires [][]constraint.Constraint
	names    []string
}

// outcomeOf returns the result of a solution. It has only the parts that the rules need, and does not use the
// code of the resolver.
func outcomeOf(p resolution.Input, s resolution.Solution) final {
	var out final
	replaced := map[string]bool{}
	brought := map[string]*resolution.Choice{}
	for i := range p.Subscriptions {
		outcome := s[p.Subscriptions[i].Name]
		if outcome.Install == nil {
			continue
		}
		if p.Subscriptions[i].Installed != "" {
			replaced[p.Subscriptions[i].Installed] = true
		}
		for _, c := range append(slices.Clone(outcome.Dependencies), outcome.Install) {
			brought[c.Catalog.String()+"/"+c.Package+"/"+c.Bundle] = c
		}
	}
	for i := range p.Operators {
		if o := &p.Operators[i]; !replaced[o.Name] {
			out.add(o.Name, &o.Subject, o.Requires, false)
		}
	}
	for _, c := range brought {
		out.add(c.Bundle, &c.Entry.Bundle.Subject, c.Entry.Bundle.Requires, true)
	}
	return out
}

func (f *final) add(name string, s *constraint.Subject, requires []constraint.Constraint, isNew bool) {
	f.names, f.subjects, f.requires, f.isNew = append(f.names, name), append(f.subjects, s), append(f.requires, requires), append(f.isNew, isNew)
}

// meets reports whether operators meet a constraint, one alone or several together by its parts.
func (f *final) meets(c *constraint.Constraint) bool {
	if slices.ContainsFunc(f.subjects, func(s *constraint.Subject) bool { return c.MetBy(s) }) {
		return true
	}
	parts := c.Split()
	for i := range parts {
		if !f.meets(&parts[i]) {
			return false
		}
	}
	return len(parts) > 0
}

// wrong returns the first violation of the rules by a solution; empty if there is none.
func wrong(p resolution.Input, s resolution.Solution) string {
	f := outcomeOf(p, s)
	for i, subject := range f.subjects {
		if !f.isNew[i] {
			continue
		}
		if subject.Deprecated {
			return f.names[i] + " is deprecated"
		}
		for j, other := range f.subjects {
			if i == j {
				continue
			}
			if subject.Package == other.Package {
				return fmt.Sprintf("%s and %s are of one package", f.names[i], f.names[j])
			}
			if slices.ContainsFunc(subject.GVKs, func(g bundles.GVK) bool { return slices.Contains(other.GVKs, g) }) {
				return fmt.Sprintf("%s and %s bring one API", f.names[i], f.names[j])
			}
		}
		for k := range f.requires[i] {
			if !f.meets(&f.requires[i][k]) {
				return fmt.Sprintf("%s lacks an operator %s", f.names[i], &f.requires[i][k])
			}
		}
	}
	if broken := f.broken(p); broken != "" {
		return broken
	}
	return wrongSteps(p, s)
}

// broken returns a dependency of an operator that was met before and no longer is.
func (f *final) broken(p resolution.Input) string {
	var before final
	for i := range p.Operators {
		before.add(p.Operators[i].Name, &p.Operators[i].Subject, nil, false)
	}
	for i := range f.subjects {
		for k := range f.requires[i] {
			if c := &f.requires[i][k]; !f.isNew[i] && !f.keeps(&before, f.subjects[i], c) {
				return fmt.Sprintf("%s loses an operator %s", f.names[i], c)
			}
		}
	}
	return ""
}

// keeps reports whether a constraint of an operator is still met: by the operator itself, by another one, or
// part by part.
func (f *final) keeps(before *final, own *constraint.Subject, c *constraint.Constraint) bool {
	meets := func(s *constraint.Subject) bool { return c.MetBy(s) }
	switch {
	case meets(own), !before.meets(c):
		return true
	case slices.ContainsFunc(before.subjects, meets):
		return slices.ContainsFunc(f.subjects, meets)
	}
	parts := c.Split()
	return !slices.ContainsFunc(parts, func(part constraint.Constraint) bool { return !f.keeps(before, own, &part) })
}

// wrongSteps checks that each Subscription gets what it requests, one update at a time.
func wrongSteps(p resolution.Input, s resolution.Solution) string {
	for i := range p.Subscriptions {
		sub := &p.Subscriptions[i]
		outcome, ok := s[sub.Name]
		c := outcome.Install
		switch {
		case !ok:
			return sub.Name + " has no outcome"
		case c == nil:
			continue
		case c.Catalog != sub.Catalog || c.Package != sub.Package || sub.Channel != "" && c.Channel != sub.Channel:
			return fmt.Sprintf("%s gets what it did not ask for: %+v", sub.Name, c)
		case c.Entry.Bundle.Err != nil:
			return fmt.Sprintf("%s gets what cannot be read: %v", sub.Name, c.Entry.Bundle.Err)
		case sub.Installed != "" && !over(p, c.Entry, sub.Installed):
			return fmt.Sprintf("%s gets %s over %s", sub.Name, c.Bundle, sub.Installed)
		}
	}
	return ""
}

// over reports whether an entry may replace a version.
func over(p resolution.Input, e *content.Entry, installed string) bool {
	if e.Replaces == installed || slices.Contains(e.Skips, installed) {
		return true
	}
	covers, err := semver.ParseRange(e.SkipRange)
	return err == nil && slices.ContainsFunc(p.Operators, func(o resolution.Operator) bool { return o.Name == installed && covers(o.Subject.Version) })
}
