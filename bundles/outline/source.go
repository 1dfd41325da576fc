package outline

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"

	"github.com/chandlery/chandlery/bundles"
)

// Source is a catalog that can be read package by package, as
// [github.com/chandlery/chandlery/bundles/fbc.Reader] is.
type Source interface {
	// Packages returns the names of all packages, in byte order. An empty name stands for objects
	// without a package.
	Packages() []string
	// Package reads the objects of one package. The error is [bundles.Problems] with what could not be read.
	Package(ctx context.Context, name string) (*bundles.Catalog, error)
	// Problems returns the problems of the catalog that belong to no package.
	Problems() bundles.Problems
}

// Options select the optional content of an outline.
type Options struct {
	// Manifests adds the digests of the bundles' manifests, which requires reading all of them.
	Manifests bool
}

// FromSource returns the outline of a catalog. The error is [bundles.Problems] when the catalog is
// invalid. Display names and providers are empty.
func FromSource(ctx context.Context, source Source, options Options) (*Catalog, error) {
	catalog := &Catalog{}
	problems := source.Problems()
	for _, name := range source.Packages() {
		part, err := source.Package(ctx, name)
		found := bundles.Problems(nil)
		if err != nil {
			if found = bundles.AsProblems(err); ctx.Err() != nil || part == nil {
				return nil, fmt.Errorf("reading package %q: %w", name, err)
			}
		}
		found = append(found, bundles.AsProblems(part.Validate())...)
		if problems = append(problems, found...); len(problems) > 0 {
			continue
		}
		for _, p := range part.Packages {
			outlined, err := newPackage(p, options)
			if err != nil {
				return nil, err
			}
			catalog.Packages = append(catalog.Packages, outlined)
		}
	}
	return catalog, problems.OrNil()
}

// newPackage returns the outline of a valid package.
func newPackage(p *bundles.Package, options Options) (*Package, error) {
	out := &Package{Name: p.Name, DefaultChannel: p.DefaultChannel}
	out.Deprecation, _ = p.Deprecated(bundles.SchemaPackage, "")
	entries := map[string]Entry{}
	for _, b := range p.Bundles {
		e, err := newEntry(p, b, options)
		if err != nil {
			return nil, fmt.Errorf("package %q, bundle %q: %w", p.Name, b.Name, err)
		}
		entries[b.Name] = e
	}
	for _, ch := range p.Channels {
		head, err := ch.Head()
		if err != nil {
			return nil, fmt.Errorf("package %q, channel %q: %w", p.Name, ch.Name, err)
		}
		channel := &Channel{Name: ch.Name, Head: head.Name}
		channel.Deprecation, _ = p.Deprecated(bundles.SchemaChannel, ch.Name)
		for _, edges := range ch.Entries {
			e := entries[edges.Name]
			e.Replaces, e.Skips, e.SkipRange = edges.Replaces, edges.Skips, edges.SkipRange
			channel.Entries = append(channel.Entries, &e)
		}
		slices.SortStableFunc(channel.Entries, func(a, b *Entry) int { return cmp.Compare(a.Name, b.Name) })
		out.Channels = append(out.Channels, channel)
	}
	return out, nil
}

// newEntry returns the fields that a bundle has in all channels.
func newEntry(p *bundles.Package, b *bundles.Bundle, options Options) (Entry, error) {
	facts, err := bundles.ParseCheckedProperties(b.Properties)
	if err != nil {
		return Entry{}, fmt.Errorf("reading properties: %w", err)
	}
	e := Entry{Name: b.Name, Image: b.Image, Provides: facts.GVKs, Requires: facts.GVKsRequired}
	if len(facts.Packages) > 0 {
		e.Version = facts.Packages[0].Version
	}
	e.Deprecation, _ = p.Deprecated(bundles.SchemaBundle, b.Name)
	manifests := sha256.New()
	for _, property := range b.Properties {
		if property.Type == bundles.TypeBundleObject || property.Type == bundles.TypeCSVMetadata {
			if options.Manifests {
				fmt.Fprintf(manifests, "%s %d ", property.Type, len(property.Value))
				manifests.Write(property.Value)
			}
			continue
		}
		e.Properties = append(e.Properties, property)
	}
	if options.Manifests {
		e.Manifests = hex.EncodeToString(manifests.Sum(nil))
	}
	return e, nil
}
