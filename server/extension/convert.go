package extension

import (
	"cmp"
	"slices"

	"github.com/chandlery/chandlery/bundles"
	"github.com/chandlery/chandlery/bundles/index"
	registryv1 "github.com/chandlery/chandlery/proto/chandlery/registry/v1"
)

// deprecation returns a deprecation for an answer, or nil if there is none.
func deprecation(message string) *registryv1.Deprecation {
	if message == "" {
		return nil
	}
	return &registryv1.Deprecation{Message: message}
}

// packageSummary returns a package for an answer, with each text and list within its limits.
func packageSummary(p *index.Summary) *registryv1.PackageSummary {
	return &registryv1.PackageSummary{
		Name: p.Package, DisplayName: clip(p.DisplayName, maxDescription), Provider: clip(p.Provider, maxDescription),
		Description: clip(p.Description, maxDescription),
		Keywords:    texts(p.Keywords), Categories: texts(p.Categories), Channels: clipList(p.Channels),
		DefaultChannel: p.DefaultChannel, Head: p.Head, Version: p.Version,
		ProvidedApis: apis(p.APIs), Bundles: count(p.Bundles), Deprecation: deprecation(p.Deprecation),
	}
}

// texts returns the first texts, each within its limits.
func texts(list []string) []string {
	var out []string
	for _, text := range clipList(list) {
		out = append(out, clip(text, maxName))
	}
	return out
}

func apis(list []bundles.GVK) []*registryv1.GroupVersionKind {
	var out []*registryv1.GroupVersionKind
	for _, api := range clipList(list) {
		out = append(out, &registryv1.GroupVersionKind{Group: api.Group, Version: api.Version, Kind: api.Kind})
	}
	return out
}

// upgradeGraph returns a graph for an answer, with the given channels only; none stands for all.
func upgradeGraph(g *index.Graph, channels []string) *registryv1.UpgradeGraph {
	out := &registryv1.UpgradeGraph{Package: g.Package, DefaultChannel: g.DefaultChannel, Deprecation: deprecation(g.Deprecation)}
	for i := range g.Channels {
		if ch := &g.Channels[i]; len(channels) == 0 || slices.Contains(channels, ch.Name) {
			out.Channels = append(out.Channels, channelGraph(ch))
		}
	}
	return out
}

func channelGraph(ch *index.ChannelGraph) *registryv1.ChannelGraph {
	out := &registryv1.ChannelGraph{Name: ch.Name, Head: ch.Head, Deprecation: deprecation(ch.Deprecation)}
	for i := range ch.Entries {
		e := &ch.Entries[i]
		out.Entries = append(out.Entries, &registryv1.GraphEntry{
			Name: e.Name, Version: e.Version, Replaces: e.Replaces, Skips: e.Skips, SkipRange: e.SkipRange,
			Deprecation: deprecation(e.Deprecation), Image: e.Image,
		})
	}
	return out
}

// missingChannel returns the first of the channels that the graph lacks.
func missingChannel(g *index.Graph, channels []string) (string, bool) {
	for _, name := range channels {
		if !slices.ContainsFunc(g.Channels, func(ch index.ChannelGraph) bool { return ch.Name == name }) {
			return name, true
		}
	}
	return "", false
}

// deprecatedObjects returns the deprecations of a package by name: the package, then channels, then
// bundles. A bundle of several channels is listed once.
func deprecatedObjects(g *index.Graph) []*registryv1.DeprecatedObject {
	var out []*registryv1.DeprecatedObject
	add := func(kind registryv1.DeprecatedKind, name, message string) {
		if message != "" {
			out = append(out, &registryv1.DeprecatedObject{Package: g.Package, Kind: kind, Name: name, Message: message})
		}
	}
	add(registryv1.DeprecatedKind_DEPRECATED_KIND_PACKAGE, "", g.Deprecation)
	for i := range g.Channels {
		ch := &g.Channels[i]
		add(registryv1.DeprecatedKind_DEPRECATED_KIND_CHANNEL, ch.Name, ch.Deprecation)
		for j := range ch.Entries {
			add(registryv1.DeprecatedKind_DEPRECATED_KIND_BUNDLE, ch.Entries[j].Name, ch.Entries[j].Deprecation)
		}
	}
	slices.SortFunc(out, compareDeprecated)
	return slices.CompactFunc(out, func(a, b *registryv1.DeprecatedObject) bool { return compareDeprecated(a, b) == 0 })
}

func compareDeprecated(a, b *registryv1.DeprecatedObject) int {
	return cmp.Or(
		cmp.Compare(a.GetPackage(), b.GetPackage()), cmp.Compare(a.GetKind(), b.GetKind()), cmp.Compare(a.GetName(), b.GetName()),
	)
}
