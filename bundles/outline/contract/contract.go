// Package contract builds outlines from the messages of the api.Registry contract, and from an
// index, which holds such messages.
package contract

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/chandlery/chandlery/bundles"
	"github.com/chandlery/chandlery/bundles/index"
	"github.com/chandlery/chandlery/bundles/outline"
	"github.com/chandlery/chandlery/proto/api"
)

// FromIndex returns the outline of an index. It returns [index.ErrDamaged] if the index is damaged;
// otherwise damaged objects would be missing.
func FromIndex(ctx context.Context, x *index.Index, options outline.Options) (*outline.Catalog, error) {
	if err := x.Check(); err != nil {
		return nil, fmt.Errorf("reading the index: %w", err)
	}
	packages, err := packagesOf(x)
	if err != nil {
		return nil, err
	}
	b := NewBuilder(packages)
	for encoded := range x.Bundles() {
		if err := context.Cause(ctx); err != nil {
			return nil, fmt.Errorf("reading bundles: %w", err)
		}
		listed := &api.Bundle{}
		if err := proto.Unmarshal(encoded.Bytes(), listed); err != nil {
			return nil, fmt.Errorf("reading a bundle: %w", err)
		}
		b.Add(listed)
	}
	catalog := b.Catalog()
	for summary := range x.Summaries() {
		if p := catalog.Package(summary.Package); p != nil {
			p.DisplayName, p.Provider = summary.DisplayName, summary.Provider
		}
	}
	if options.Manifests {
		if err := digestManifests(ctx, x, catalog); err != nil {
			return nil, err
		}
	}
	return catalog, nil
}

// packagesOf returns all packages in the form of GetPackage.
func packagesOf(x *index.Index) ([]*api.Package, error) {
	var packages []*api.Package
	for encoded := range x.Packages() {
		name := &api.PackageName{}
		if err := proto.Unmarshal(encoded.Bytes(), name); err != nil {
			return nil, fmt.Errorf("reading the name of a package: %w", err)
		}
		reply, err := x.Package(name.GetName())
		if err != nil {
			return nil, fmt.Errorf("reading package %q: %w", name.GetName(), err)
		}
		p := &api.Package{}
		if err := proto.Unmarshal(reply.Bytes(), p); err != nil {
			return nil, fmt.Errorf("reading package %q: %w", name.GetName(), err)
		}
		packages = append(packages, p)
	}
	return packages, nil
}

// Builder builds an outline from the messages of the api.Registry contract.
type Builder struct {
	catalog *outline.Catalog
	// names stores each name once, however many entries repeat it.
	names map[string]string
}

// NewBuilder returns a builder with the packages in the form of GetPackage.
func NewBuilder(packages []*api.Package) *Builder {
	b := &Builder{catalog: &outline.Catalog{}, names: make(map[string]string)}
	for _, p := range packages {
		out := &outline.Package{
			Name: p.GetName(), DefaultChannel: p.GetDefaultChannelName(), Deprecation: p.GetDeprecation().GetMessage(),
		}
		for _, ch := range p.GetChannels() {
			out.Channels = append(out.Channels, &outline.Channel{
				Name: ch.GetName(), Head: ch.GetCsvName(), Deprecation: ch.GetDeprecation().GetMessage(),
			})
		}
		slices.SortFunc(out.Channels, func(a, b *outline.Channel) int { return cmp.Compare(a.Name, b.Name) })
		b.catalog.Packages = append(b.catalog.Packages, out)
	}
	slices.SortFunc(b.catalog.Packages, func(a, b *outline.Package) int { return cmp.Compare(a.Name, b.Name) })
	return b
}

// Add adds a bundle in the form of ListBundles. It ignores a bundle of an unknown channel, which a
// server may send if its content changes in between.
func (b *Builder) Add(in *api.Bundle) {
	p := b.catalog.Package(in.GetPackageName())
	if p == nil {
		return
	}
	ch := p.Channel(in.GetChannelName())
	if ch == nil {
		return
	}
	e := &outline.Entry{
		Name: b.once(in.GetCsvName()), Version: b.once(in.GetVersion()), Image: b.once(in.GetBundlePath()),
		Replaces: b.once(in.GetReplaces()), SkipRange: b.once(in.GetSkipRange()),
		Deprecation: in.GetDeprecation().GetMessage(),
		Provides:    b.gvks(in.GetProvidedApis()), Requires: b.gvks(in.GetRequiredApis()),
	}
	for _, name := range in.GetSkips() {
		e.Skips = append(e.Skips, b.once(name))
	}
	for _, property := range in.GetProperties() {
		e.Properties = append(e.Properties, bundles.Property{
			Type: b.once(property.GetType()), Value: json.RawMessage(b.once(property.GetValue())),
		})
	}
	ch.Entries = append(ch.Entries, e)
}

// Catalog returns the outline.
func (b *Builder) Catalog() *outline.Catalog {
	for _, p := range b.catalog.Packages {
		for _, ch := range p.Channels {
			slices.SortStableFunc(ch.Entries, func(a, b *outline.Entry) int { return cmp.Compare(a.Name, b.Name) })
		}
	}
	return b.catalog
}

func (b *Builder) once(text string) string {
	if kept, ok := b.names[text]; ok {
		return kept
	}
	b.names[text] = text
	return text
}

func (b *Builder) gvks(in []*api.GroupVersionKind) []bundles.GVK {
	var out []bundles.GVK
	for _, gvk := range in {
		out = append(out, bundles.GVK{Group: b.once(gvk.GetGroup()), Version: b.once(gvk.GetVersion()), Kind: b.once(gvk.GetKind())})
	}
	return out
}

// digestManifests sets the digests of the manifests. A bundle has the same manifests in all its channels.
func digestManifests(ctx context.Context, x *index.Index, catalog *outline.Catalog) error {
	for _, p := range catalog.Packages {
		known := make(map[string]string)
		for _, ch := range p.Channels {
			for _, e := range ch.Entries {
				if err := context.Cause(ctx); err != nil {
					return fmt.Errorf("reading manifests: %w", err)
				}
				if known[e.Name] == "" {
					reply, err := x.Bundle(p.Name, ch.Name, e.Name)
					if err != nil {
						return fmt.Errorf("reading manifests: %w", err)
					}
					digest, err := manifestDigest(reply.Bytes())
					if err != nil {
						return fmt.Errorf("reading manifests of bundle %q: %w", e.Name, err)
					}
					known[e.Name] = digest
				}
				e.Manifests = known[e.Name]
			}
		}
	}
	return nil
}

// The fields of api.Bundle that hold manifests.
const (
	fieldCSVJSON protowire.Number = 4
	fieldObject  protowire.Number = 5
)

// manifestDigest returns a digest of the manifests in an encoded api.Bundle. It does not decode the
// message, which is mostly manifests.
func manifestDigest(message []byte) (string, error) {
	digest := sha256.New()
	for len(message) > 0 {
		number, kind, tag := protowire.ConsumeTag(message)
		if tag < 0 {
			return "", fmt.Errorf("decoding: %w", protowire.ParseError(tag))
		}
		length := protowire.ConsumeFieldValue(number, kind, message[tag:])
		if length < 0 {
			return "", fmt.Errorf("decoding: %w", protowire.ParseError(length))
		}
		if number == fieldCSVJSON || number == fieldObject {
			digest.Write(message[:tag+length])
		}
		message = message[tag+length:]
	}
	return hex.EncodeToString(digest.Sum(nil)), nil
}
