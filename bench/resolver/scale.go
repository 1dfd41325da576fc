package main

import (
	"encoding/json"
	"fmt"
	"runtime"
	"slices"

	"github.com/chandlery/chandlery/bundles"
	"github.com/chandlery/chandlery/supervisor/resolution/content"
)

// copies returns n copies of the catalog in one. In each further copy all packages, bundles and API
// groups are renamed, so it has its own dependencies.
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

// part returns every n-th package and the packages to keep.
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

// renameValue renames the packages and API groups in a property at any depth.
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

// snapshot converts a catalog to the form of the supervisor and returns its size on the heap in bytes.
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

// heap returns the bytes in use after garbage collections.
func heap() int64 {
	// The second collection frees what the first one has found to be finalized.
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}
