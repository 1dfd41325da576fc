package index

import (
	"cmp"
	"fmt"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/chandlery/chandlery/bundles"
	"github.com/chandlery/chandlery/proto/api"
)

// entryKey names a bundle in a channel.
type entryKey struct {
	pkg, channel, bundle string
}

func (k entryKey) compare(o entryKey) int {
	return cmp.Or(cmp.Compare(k.pkg, o.pkg), cmp.Compare(k.channel, o.channel), cmp.Compare(k.bundle, o.bundle))
}

// compareListed is the order of ListBundles.
func (k entryKey) compareListed(o entryKey) int {
	return cmp.Or(cmp.Compare(k.channel, o.channel), cmp.Compare(k.pkg, o.pkg), cmp.Compare(k.bundle, o.bundle))
}

// entry is a bundle as one channel presents it, encoded.
type entry struct {
	entryKey

	replaces string
	skips    []string
	// small holds all fields but the payload, in the order of their numbers:
	// names up to namesEnd, facts up to factsEnd, replaces and skips up to
	// graphEnd, then the deprecation.
	small                        []byte
	namesEnd, factsEnd, graphEnd int
	payload                      payload
	// inline tells that the bundle has no image: its payload is listed.
	inline bool
	// edges has a ChannelEntry for what the entry replaces and one for each
	// further bundle that it skips. innerEdges leaves out skipped bundles that
	// are not part of the channel; it is set for heads.
	edges      []Message
	innerEdges []Message
}

// full returns the bundle with its manifests and without its place in the
// graph, as the unary RPCs answer.
func (e *entry) full() Message {
	out := make(Message, 0, 3+len(e.payload))
	out = append(out, e.small[:e.namesEnd])
	out = append(out, e.payload...)
	out = append(out, e.small[e.namesEnd:e.factsEnd])
	if e.graphEnd < len(e.small) {
		out = append(out, e.small[e.graphEnd:])
	}
	return out
}

// listed returns the bundle as ListBundles answers: with its place in the
// graph, and with its manifests only when it has no image.
func (e *entry) listed() Message {
	if !e.inline {
		return Message{e.small}
	}
	out := make(Message, 0, 2+len(e.payload))
	out = append(out, e.small[:e.namesEnd])
	out = append(out, e.payload...)
	return append(out, e.small[e.namesEnd:])
}

// encodeSmall fills small from the bundle's facts.
func (e *entry) encodeSmall(facts *api.Bundle, skipRange, deprecation string, deprecated bool) error {
	facts.SkipRange = skipRange
	graph := &api.Bundle{Replaces: e.replaces, Skips: e.skips}
	last := &api.Bundle{}
	if deprecated {
		last.Deprecation = &api.Deprecation{Message: deprecation}
	}
	var err error
	for _, part := range []struct {
		message *api.Bundle
		end     *int
	}{
		{&api.Bundle{CsvName: e.bundle, PackageName: e.pkg, ChannelName: e.channel}, &e.namesEnd},
		{facts, &e.factsEnd},
		{graph, &e.graphEnd},
		{last, new(int)},
	} {
		if e.small, err = marshalOptions.MarshalAppend(e.small, part.message); err != nil {
			return fmt.Errorf("encoding bundle %q: %w", e.bundle, err)
		}
		*part.end = len(e.small)
	}
	e.small = slices.Clip(e.small)
	return nil
}

// encodeEdges fills edges and, for a head, innerEdges. An entry that skips
// what it replaces has one edge for both.
func (e *entry) encodeEdges(isHead bool, inChannel func(name string) bool) error {
	first, err := encodeEdge(e.entryKey, e.replaces)
	if err != nil {
		return err
	}
	e.edges = []Message{first}
	if isHead {
		e.innerEdges = []Message{first}
	}
	for _, skipped := range e.skips {
		if skipped == e.replaces {
			continue
		}
		edge, err := encodeEdge(e.entryKey, skipped)
		if err != nil {
			return err
		}
		e.edges = append(e.edges, edge)
		if isHead && inChannel(skipped) {
			e.innerEdges = append(e.innerEdges, edge)
		}
	}
	return nil
}

// marshalOptions make encoding repeatable.
var marshalOptions = proto.MarshalOptions{Deterministic: true}

func marshal(m proto.Message) ([]byte, error) {
	out, err := marshalOptions.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("encoding %s: %w", m.ProtoReflect().Descriptor().FullName(), err)
	}
	return out, nil
}

// bundleFacts returns the fields of a bundle that are the same in all its
// channels, except names, manifests and deprecation.
func bundleFacts(b *bundles.Bundle, facts *bundles.Facts) (*api.Bundle, error) {
	out := &api.Bundle{
		BundlePath:   b.Image,
		ProvidedApis: encodeGVKs(facts.GVKs),
		RequiredApis: encodeGVKs(facts.GVKsRequired),
		Version:      facts.Packages[0].Version,
	}
	required := facts.PackagesRequired
	for _, p := range b.Properties {
		switch p.Type {
		case bundles.TypeBundleObject, bundles.TypeCSVMetadata:
			// These are the manifests: clients copy properties into annotations,
			// where manifests have no room.
			continue
		case bundles.TypeGVKRequired:
			out.Dependencies = append(out.Dependencies, &api.Dependency{Type: bundles.TypeGVK, Value: string(p.Value)})
		case bundles.TypePackageRequired:
			value, err := encodeJSON(bundles.PackageProperty{
				PackageName: required[0].PackageName, Version: required[0].VersionRange,
			})
			if err != nil {
				return nil, err
			}
			required = required[1:]
			out.Dependencies = append(out.Dependencies, &api.Dependency{Type: bundles.TypePackage, Value: string(value)})
		}
		out.Properties = append(out.Properties, &api.Property{Type: p.Type, Value: string(p.Value)})
	}
	return out, nil
}

func encodeGVKs(in []bundles.GVK) []*api.GroupVersionKind {
	out := make([]*api.GroupVersionKind, len(in))
	for i, gvk := range in {
		out[i] = &api.GroupVersionKind{Group: gvk.Group, Version: gvk.Version, Kind: gvk.Kind}
	}
	return out
}
