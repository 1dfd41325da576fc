package selection

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/blang/semver/v4"

	"github.com/chandlery/chandlery/bundles"
)

// versions are the versions of the bundles of a package, by name.
type versions map[string]semver.Version

// readVersions returns the versions of all bundles. The error is [bundles.Problems].
func readVersions(p *bundles.Package) (versions, error) {
	out := make(versions, len(p.Bundles))
	for _, b := range p.Bundles {
		version, err := versionOf(b)
		if err != nil {
			return nil, bundles.Problems{{
				File: b.Origin.String(), Package: p.Name, Bundle: b.Name, Message: err.Error(), Remedy: "correct the bundle",
			}}
		}
		out[b.Name] = version
	}
	return out, nil
}

var errNoVersion = errors.New("the bundle has no property of type " + bundles.TypePackage)

// versionOf returns the version in the olm.package property of a bundle.
func versionOf(b *bundles.Bundle) (semver.Version, error) {
	for _, p := range b.Properties {
		if p.Type != bundles.TypePackage {
			continue
		}
		facts, err := bundles.ParseProperties([]bundles.Property{p})
		if err != nil {
			return semver.Version{}, fmt.Errorf("reading the version: %w", err)
		}
		version, err := semver.Parse(facts.Packages[0].Version)
		if err != nil {
			return semver.Version{}, fmt.Errorf("reading the version: %w", err)
		}
		return version, nil
	}
	return semver.Version{}, errNoVersion
}

// headOf returns the head of a channel if it may be kept, else the highest version that may be kept.
func (v versions) headOf(ch *bundles.Channel, keep map[string]bool) string {
	if head, err := ch.Head(); err == nil && keep[head.Name] {
		return head.Name
	}
	var highest string
	for name := range keep {
		if highest == "" || cmp.Or(v[name].Compare(v[highest]), cmp.Compare(name, highest)) > 0 {
			highest = name
		}
	}
	return highest
}

// span returns a text with the lowest and the highest version of some entries.
func (v versions) span(entries []bundles.Entry) string {
	var lowest, highest semver.Version
	for i := range entries {
		version := v[entries[i].Name]
		if i == 0 || version.LT(lowest) {
			lowest = version
		}
		if i == 0 || version.GT(highest) {
			highest = version
		}
	}
	return fmt.Sprintf("versions from %s to %s", lowest, highest)
}

// named returns the name of the bundle with a name or version; empty for none.
func (v versions) named(installed string) string {
	if _, ok := v[installed]; ok {
		return installed
	}
	version, err := semver.Parse(installed)
	if err != nil {
		return ""
	}
	found := ""
	for name := range v {
		if v[name].Equals(version) && (found == "" || name < found) {
			found = name
		}
	}
	return found
}

// successors returns the entries that may be installed over a bundle, the best first. If the
// version of the bundle is unknown, skip ranges are ignored.
func (v versions) successors(ch *bundles.Channel, name string) []bundles.Entry {
	version, known := v[name]
	if known {
		return ch.Successors(name, version)
	}
	plain := *ch
	plain.Entries = slices.Clone(ch.Entries)
	for i := range plain.Entries {
		plain.Entries[i].SkipRange = ""
	}
	return plain.Successors(name, version)
}

// path returns the entries on the way of an installed bundle, by name or version, to the head of a
// channel. It includes the bundle if the channel has it. Each step takes the best successor, as a
// cluster does unless constraints prevent it.
func (v versions) path(ch *bundles.Channel, installed string) []string {
	name, known := v.named(installed), v
	if name == "" {
		name = installed
		if version, err := semver.Parse(installed); err == nil {
			known = versions{name: version}
		}
	}
	var out []string
	seen := make(map[string]bool)
	if _, ok := ch.Entry(name); ok {
		out, seen[name] = append(out, name), true
	}
	for {
		next := known.successors(ch, name)
		if len(next) == 0 || seen[next[0].Name] {
			return out
		}
		name, known = next[0].Name, v
		out, seen[name] = append(out, name), true
	}
}
