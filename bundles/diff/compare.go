package diff

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/blang/semver/v4"

	"github.com/chandlery/chandlery/bundles"
	"github.com/chandlery/chandlery/bundles/outline"
)

// Catalogs returns the changes from a to b, sorted by package. Changes of a whole package come first.
func Catalogs(a, b *outline.Catalog) []Change {
	out := []Change{}
	for _, p := range a.Packages {
		if b.Package(p.Name) == nil {
			out = append(out, Change{
				Kind: PackageRemoved, Package: p.Name, From: extent(p),
				Breaking: "who has installed it gets no updates any more",
			})
		}
	}
	for _, p := range b.Packages {
		old := a.Package(p.Name)
		if old == nil {
			out = append(out, Change{Kind: PackageAdded, Package: p.Name, To: extent(p)})
			continue
		}
		c := comparison{name: p.Name, a: old, b: p}
		c.run()
		out = append(out, c.changes...)
	}
	slices.SortStableFunc(out, Change.compare)
	return out
}

// Breaking counts the changes that break installed versions.
func Breaking(changes []Change) int {
	n := 0
	for i := range changes {
		if changes[i].Breaking != "" {
			n++
		}
	}
	return n
}

// extent returns a text about the size of a package.
func extent(p *outline.Package) string {
	text := bundles.Count(len(p.Channels), "channel") + ", " + bundles.Count(len(p.Bundles()), "bundle")
	if ch := p.Channel(p.DefaultChannel); ch != nil {
		text += ", head " + ch.Head
	}
	return text
}

// comparison compares the packages of one name in both catalogs.
type comparison struct {
	name    string
	a, b    *outline.Package
	changes []Change
}

func (c *comparison) add(change Change) {
	change.Package = c.name
	c.changes = append(c.changes, change)
}

func (c *comparison) run() {
	if c.a.DefaultChannel != c.b.DefaultChannel {
		c.add(Change{Kind: DefaultChannelChanged, From: c.a.DefaultChannel, To: c.b.DefaultChannel})
	}
	c.deprecation(Change{}, c.a.Deprecation, c.b.Deprecation)
	before, after := placed(c.a), placed(c.b)
	for _, ch := range c.a.Channels {
		if c.b.Channel(ch.Name) == nil {
			c.add(Change{
				Kind: ChannelRemoved, Channel: ch.Name, From: bundles.Count(len(ch.Entries), "entry") + ", head " + ch.Head,
				Breaking: "who follows it gets no updates any more",
			})
		}
	}
	for _, ch := range c.b.Channels {
		old := c.a.Channel(ch.Name)
		if old == nil {
			c.add(Change{Kind: ChannelAdded, Channel: ch.Name, To: bundles.Count(len(ch.Entries), "entry") + ", head " + ch.Head})
			continue
		}
		c.channel(old, ch, before, after)
	}
	for _, name := range slices.Sorted(maps.Keys(before)) {
		if _, stays := after[name]; !stays {
			c.add(Change{Kind: BundleRemoved, Bundle: name, From: "was in " + strings.Join(before[name].Channels, ", ")})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(after)) {
		old, was := before[name]
		if !was {
			c.add(Change{Kind: BundleAdded, Bundle: name, To: "in " + strings.Join(after[name].Channels, ", ")})
			continue
		}
		c.bundle(old.Entry, after[name].Entry)
	}
}

// placed returns the bundles of a package by name.
func placed(p *outline.Package) map[string]outline.Placed {
	out := make(map[string]outline.Placed)
	for _, b := range p.Bundles() {
		out[b.Name] = b
	}
	return out
}

func (c *comparison) deprecation(about Change, from, to string) {
	about.From, about.To = from, to
	switch {
	case from == to:
		return
	case from == "":
		about.Kind = Deprecated
	case to == "":
		about.Kind = NoLongerDeprecated
	default:
		about.Kind = DeprecationChanged
	}
	c.add(about)
}

// channel compares a channel that both catalogs have.
func (c *comparison) channel(a, b *outline.Channel, before, after map[string]outline.Placed) {
	c.deprecation(Change{Channel: b.Name}, a.Deprecation, b.Deprecation)
	if a.Head != b.Head {
		c.head(a, b)
	}
	c.apis(a, b)
	for _, e := range a.Entries {
		if _, stays := after[e.Name]; stays && b.Entry(e.Name) == nil {
			c.add(Change{Kind: BundleLeft, Channel: b.Name, Bundle: e.Name})
		}
	}
	for _, e := range b.Entries {
		old := a.Entry(e.Name)
		if old == nil {
			if _, was := before[e.Name]; was {
				c.add(Change{Kind: BundleEntered, Channel: b.Name, Bundle: e.Name})
			}
			continue
		}
		if from, to := upgrades(old), upgrades(e); from != to {
			c.add(Change{Kind: UpgradesChanged, Channel: b.Name, Bundle: e.Name, From: from, To: to})
		}
	}
	c.stranded(a, b, before)
}

// head adds a change if the head of a channel differs.
func (c *comparison) head(a, b *outline.Channel) {
	change := Change{Kind: HeadMoved, Channel: b.Name, From: a.Head, To: b.Head}
	from, to := a.Entry(a.Head), b.Entry(b.Head)
	if from != nil && to != nil && outline.CompareVersions(to.Version, from.Version) < 0 {
		change.Breaking = fmt.Sprintf("version %s is lower than %s", to.Version, from.Version)
	}
	c.add(change)
}

// apis adds the APIs that the head of a channel no longer provides.
func (c *comparison) apis(a, b *outline.Channel) {
	from, to := a.Entry(a.Head), b.Entry(b.Head)
	if from == nil || to == nil {
		return
	}
	var gone []bundles.GVK
	for _, gvk := range from.Provides {
		if !slices.Contains(to.Provides, gvk) && !slices.Contains(gone, gvk) {
			gone = append(gone, gvk)
			c.add(Change{
				Kind: APIRemoved, Channel: b.Name, Bundle: to.Name, From: gvk.String(),
				Breaking: "who uses it cannot upgrade to this head without harm",
			})
		}
	}
}

// upgrades returns a text about the bundles that an entry may be installed over.
func upgrades(e *outline.Entry) string {
	var parts []string
	if e.Replaces != "" {
		parts = append(parts, "replaces "+e.Replaces)
	}
	if len(e.Skips) > 0 {
		skips := slices.Clone(e.Skips)
		slices.Sort(skips)
		parts = append(parts, "skips "+strings.Join(slices.Compact(skips), " "))
	}
	if e.SkipRange != "" {
		parts = append(parts, "skipRange "+e.SkipRange)
	}
	return strings.Join(parts, ", ")
}

// stranded adds the names from which no upgrade leads in the new channel. In the old channel, an
// upgrade led from them or they were its head.
func (c *comparison) stranded(a, b *outline.Channel, before map[string]outline.Placed) {
	now, then := b.Graph(), a.Graph()
	for _, name := range mentioned(a) {
		if b.Entry(name) != nil {
			// A valid channel leads from each of its entries to the head.
			continue
		}
		var version semver.Version
		if known, ok := before[name]; ok {
			// A version that cannot be parsed counts as 0.0.0.
			version, _ = semver.Parse(known.Version)
		}
		_, installable := before[name]
		led := a.Entry(name) != nil || len(successors(then, name, version, installable)) > 0
		if led && len(successors(now, name, version, installable)) == 0 {
			c.add(Change{
				Kind: Stranded, Channel: b.Name, Bundle: name,
				Breaking: "who has it installed stays on it: let an entry replace or skip it",
			})
		}
	}
}

// successors returns the entries that may be installed over a bundle. No skipRange covers an unknown version.
func successors(graph *bundles.Channel, name string, version semver.Version, versionKnown bool) []bundles.Entry {
	found := graph.Successors(name, version)
	if versionKnown {
		return found
	}
	return slices.DeleteFunc(found, func(e bundles.Entry) bool {
		return e.Replaces != name && !slices.Contains(e.Skips, name)
	})
}

// mentioned returns the names of a channel's entries and of the bundles that they replace and skip,
// in byte order.
func mentioned(ch *outline.Channel) []string {
	names := make(map[string]bool)
	for _, e := range ch.Entries {
		names[e.Name] = true
		if e.Replaces != "" {
			names[e.Replaces] = true
		}
		for _, name := range e.Skips {
			names[name] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// bundle compares a bundle that both channels have.
func (c *comparison) bundle(a, b *outline.Entry) {
	c.deprecation(Change{Bundle: b.Name}, a.Deprecation, b.Deprecation)
	if a.Image != b.Image {
		c.add(Change{Kind: ImageChanged, Bundle: b.Name, From: a.Image, To: b.Image})
	}
	if types := changedProperties(a.Properties, b.Properties); len(types) > 0 {
		c.add(Change{Kind: PropertiesChanged, Bundle: b.Name, To: strings.Join(types, ", ")})
	}
	if a.Manifests != "" && b.Manifests != "" && a.Manifests != b.Manifests {
		c.add(Change{Kind: ManifestsChanged, Bundle: b.Name})
	}
}

// changedProperties returns the types of the properties that only one side has; "order" if both
// have the same in a different order.
func changedProperties(a, b []bundles.Property) []string {
	if slices.EqualFunc(a, b, same) {
		return nil
	}
	counts, types := make(map[string]int), make(map[string]bool)
	for _, p := range a {
		counts[p.Type+"\x00"+string(p.Value)]++
	}
	for _, p := range b {
		counts[p.Type+"\x00"+string(p.Value)]--
	}
	for key, n := range counts {
		if n != 0 {
			kind, _, _ := strings.Cut(key, "\x00")
			types[kind] = true
		}
	}
	if len(types) == 0 {
		return []string{"order"}
	}
	return slices.Sorted(maps.Keys(types))
}

func same(a, b bundles.Property) bool { return a.Type == b.Type && string(a.Value) == string(b.Value) }
