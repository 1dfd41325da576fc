// Package prune returns the part of a catalog that a selection keeps. It decodes only the kept
// objects in full. They retain all their fields.
package prune

import (
	"context"
	"fmt"
	"slices"

	"github.com/operator-framework/operator-registry/alpha/declcfg"

	"github.com/chandlery/chandlery/bundles"
	"github.com/chandlery/chandlery/bundles/authoring/render"
	"github.com/chandlery/chandlery/bundles/selection"
)

// Pruned is the selected part of a catalog.
type Pruned struct {
	from     *render.Directory
	selected *selection.Selected
}

// Select applies a selection to a catalog. The error is [bundles.Problems] when the selection or
// the catalog is invalid.
func Select(ctx context.Context, from *render.Directory, wanted *selection.Selection) (*Pruned, error) {
	selected, err := selection.Open(ctx, from.Reader(), wanted)
	if err != nil {
		return nil, from.Located(fmt.Errorf("selecting: %w", err))
	}
	if err := selected.Problems().OrNil(); err != nil {
		return nil, from.Located(fmt.Errorf("selecting: %w", err))
	}
	return &Pruned{from: from, selected: selected}, nil
}

// Selected returns the selection's result.
func (p *Pruned) Selected() *selection.Selected { return p.selected }

// Packages returns the names of the kept packages.
func (p *Pruned) Packages() []string { return p.selected.Packages() }

// Package returns the kept objects of a package.
func (p *Pruned) Package(ctx context.Context, name string) (*declcfg.DeclarativeConfig, error) {
	if name == "" {
		return p.from.Package(ctx, name) //nolint:wrapcheck // names the package
	}
	whole, err := p.from.Reader().Package(ctx, name)
	if err != nil {
		return nil, p.from.Located(fmt.Errorf("reading package %q: %w", name, err))
	}
	if err := whole.Validate(); err != nil {
		return nil, p.from.Located(err) //nolint:wrapcheck // names file and line
	}
	if len(whole.Packages) != 1 {
		return p.from.Package(ctx, name) //nolint:wrapcheck // names the package
	}
	kept, err := p.selected.Kept(whole.Packages[0])
	if err != nil {
		return nil, p.from.Located(fmt.Errorf("selecting of package %q: %w", name, err))
	}
	cfg, err := p.from.Some(ctx, name, func(schema, object string) bool {
		return schema != declcfg.SchemaBundle || kept.HasBundle(object)
	})
	if err != nil {
		return nil, err //nolint:wrapcheck // names the package
	}
	reduce(cfg, kept)
	return cfg, nil
}

// reduce removes the objects of a package that are not kept.
func reduce(cfg *declcfg.DeclarativeConfig, kept *selection.Kept) {
	for i := range cfg.Packages {
		cfg.Packages[i].DefaultChannel = kept.DefaultChannel
	}
	cfg.Channels = slices.DeleteFunc(cfg.Channels, func(ch declcfg.Channel) bool { return !kept.HasChannel(ch.Name) })
	for i := range cfg.Channels {
		at := slices.IndexFunc(kept.Channels, func(ch *bundles.Channel) bool { return ch.Name == cfg.Channels[i].Name })
		cfg.Channels[i].Entries = entries(kept.Channels[at])
	}
	for i := range cfg.Deprecations {
		list := &cfg.Deprecations[i]
		list.Entries = slices.DeleteFunc(list.Entries, func(e declcfg.DeprecationEntry) bool {
			return !kept.Keeps(bundles.Reference{Schema: e.Reference.Schema, Name: e.Reference.Name})
		})
	}
	cfg.Deprecations = slices.DeleteFunc(cfg.Deprecations, func(d declcfg.Deprecation) bool { return len(d.Entries) == 0 })
}

func entries(ch *bundles.Channel) []declcfg.ChannelEntry {
	out := make([]declcfg.ChannelEntry, len(ch.Entries))
	for i, e := range ch.Entries {
		out[i] = declcfg.ChannelEntry{Name: e.Name, Replaces: e.Replaces, Skips: e.Skips, SkipRange: e.SkipRange}
	}
	return out
}
