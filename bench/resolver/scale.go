package main

import (
	"encoding/json"
	"fmt"
	"runtime"
	"slices"

	"github.com/chandlery/chandlery/bundles"
	"github.com/chandlery/chandlery/supervisor/catalogs/content"
)

// copies gives the catalog n times: each further copy is renamed throughout, its
// packages, bundles and API groups, so that it has dependencies of its own.
func copies(source *bundles.Catalog, n int) (*bundles.Catalog, error) {
	out := &bundles.Catalog{Packages: slices.Clone(source.Packages)}
	for i := 2; i <= n; i++ {
		suffix := fmt.Sprintf("-%d", i)
		for _, p := range source.Packages {
			renamed, err := rename(p, suffix)
			if err != nil {
				return nil, err
			}
			out.Packages = append(out.Packages, renamed)
		}
	}
	return out, nil
}

// part gives every n-th package, and those that are to be kept.
func part(source *bundles.Catalog, n int, keep map[string]bool) *bundles.Catalog {
	out := &bundles.Catalog{}
	for i, p := range source.Packages {
		if i%n == 0 || keep[p.Name] {
			out.Packages = append(out.Packages, p)
		}
	}
	return out
}

func rename(p *bundles.Package, suffix string) (*bundles.Package, error) {
	out := &bundles.Package{Name: p.Name + suffix, DefaultChannel: p.DefaultChannel}
	for _, c := range p.Channels {
		channel := &bundles.Channel{Name: c.Name, Package: out.Name}
		for _, e := range c.Entries {
			entry := bundles.Entry{Name: e.Name + suffix, Replaces: e.Replaces, SkipRange: e.SkipRange}
			if e.Replaces != "" {
				entry.Replaces += suffix
			}
			for _, skip := range e.Skips {
				entry.Skips = append(entry.Skips, skip+suffix)
			}
			channel.Entries = append(channel.Entries, entry)
		}
		out.Channels = append(out.Channels, channel)
	}
	for _, b := range p.Bundles {
		bundle := &bundles.Bundle{Name: b.Name + suffix, Package: out.Name, Image: b.Image}
		for _, property := range b.Properties {
			value, err := renameValue(property.Value, suffix)
			if err != nil {
				return nil, fmt.Errorf("renaming a copy of bundle %s: %w", b.Name, err)
			}
			bundle.Properties = append(bundle.Properties, bundles.Property{Type: property.Type, Value: value})
		}
		out.Bundles = append(out.Bundles, bundle)
	}
	return out, nil
}

// renameValue renames the packages and API groups that a property names, however
// deep in it.
func renameValue(raw json.RawMessage, suffix string) (json.RawMessage, error) {
	var value any
	if err := json.Unmarshal(raw, &value); err != nil {
		return nil, fmt.Errorf("reading a property: %w", err)
	}
	renameNames(value, suffix)
	out, err := json.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("writing a property: %w", err)
	}
	return out, nil
}

func renameNames(value any, suffix string) {
	switch value := value.(type) {
	case []any:
		for _, item := range value {
			renameNames(item, suffix)
		}
	case map[string]any:
		for key, item := range value {
			text, is := item.(string)
			if is && (key == "packageName" || key == "group") {
				value[key] = text + suffix
				continue
			}
			renameNames(item, suffix)
		}
	}
}

// snapshot makes of a catalog what the supervisor holds of it, and says how many
// bytes of heap that takes.
func snapshot(source *bundles.Catalog) (catalog *content.Catalog, bytes int64, err error) {
	before := heap()
	catalog, err = content.FromCatalog(source)
	if err != nil {
		return nil, 0, fmt.Errorf("making a snapshot of the catalog: %w", err)
	}
	bytes = heap() - before
	runtime.KeepAlive(source)
	return catalog, bytes, nil
}

// heap gives the bytes in use once all garbage is collected.
func heap() int64 {
	// What the first one finds to be finalised goes with the second one.
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}
