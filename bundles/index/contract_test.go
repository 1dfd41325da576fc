package index

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/chandlery/chandlery/bundles"
	"github.com/chandlery/chandlery/bundles/fbc"
	"github.com/chandlery/chandlery/proto/api"
	"github.com/chandlery/chandlery/test/realcatalogs"
)

// contract are the messages of a package, except manifests, in a fixed order.
type contract [][]byte

// typedContract encodes the messages with the generated types of the contract. It defines the expected encoding.
func typedContract(p *bundles.Package) (contract, error) {
	t := typed{deprecated: deprecations(p)}
	for _, b := range p.Bundles {
		facts, err := bundles.ParseCheckedProperties(b.Properties)
		if err != nil {
			return nil, err
		}
		t.add(typedFacts(b, facts))
	}
	reply := &api.Package{Name: p.Name, DefaultChannelName: p.DefaultChannel, Deprecation: t.deprecation(bundles.SchemaPackage, "")}
	for _, ch := range p.Channels {
		head, err := ch.Head()
		if err != nil {
			return nil, err
		}
		reply.Channels = append(reply.Channels, &api.Channel{
			Name: ch.Name, CsvName: head.Name, Deprecation: t.deprecation(bundles.SchemaChannel, ch.Name),
		})
		for i := range ch.Entries {
			t.entry(p.Name, ch, &ch.Entries[i])
		}
	}
	t.add(reply)
	t.add(&api.PackageName{Name: p.Name})
	return t.out, t.err
}

// typed collects encoded messages.
type typed struct {
	deprecated map[bundles.Reference]string
	out        contract
	err        error
}

func (t *typed) add(m proto.Message) {
	encoded, err := marshalOptions.Marshal(m)
	if err != nil {
		t.err = err
	}
	t.out = append(t.out, encoded)
}

func (t *typed) deprecation(schema, name string) *api.Deprecation {
	message, ok := t.deprecated[bundles.Reference{Schema: schema, Name: name}]
	if !ok {
		return nil
	}
	return &api.Deprecation{Message: message}
}

func (t *typed) entry(pkg string, ch *bundles.Channel, e *bundles.Entry) {
	t.add(&api.Bundle{
		CsvName: e.Name, PackageName: pkg, ChannelName: ch.Name, SkipRange: e.SkipRange, Deprecation: t.deprecation(bundles.SchemaBundle, e.Name),
	})
	t.add(&api.Bundle{Replaces: e.Replaces, Skips: e.Skips})
	for i, replaced := range append([]string{e.Replaces}, e.Skips...) {
		if i == 0 || replaced != e.Replaces {
			t.add(&api.ChannelEntry{PackageName: pkg, ChannelName: ch.Name, BundleName: e.Name, Replaces: replaced})
		}
	}
}

func typedFacts(b *bundles.Bundle, facts *bundles.Facts) *api.Bundle {
	gvks := func(in []bundles.GVK) []*api.GroupVersionKind {
		out := make([]*api.GroupVersionKind, len(in))
		for i, gvk := range in {
			out[i] = &api.GroupVersionKind{Group: gvk.Group, Version: gvk.Version, Kind: gvk.Kind}
		}
		return out
	}
	out := &api.Bundle{
		BundlePath: b.Image, ProvidedApis: gvks(facts.GVKs), RequiredApis: gvks(facts.GVKsRequired), Version: facts.Packages[0].Version,
	}
	required := facts.PackagesRequired
	for _, p := range b.Properties {
		switch p.Type {
		case bundles.TypeBundleObject, bundles.TypeCSVMetadata:
			continue
		case bundles.TypeGVKRequired:
			out.Dependencies = append(out.Dependencies, &api.Dependency{Type: bundles.TypeGVK, Value: string(p.Value)})
		case bundles.TypePackageRequired:
			value, err := encodeJSON(bundles.PackageProperty{PackageName: required[0].PackageName, Version: required[0].VersionRange})
			if err != nil {
				return nil
			}
			required = required[1:]
			out.Dependencies = append(out.Dependencies, &api.Dependency{Type: bundles.TypePackage, Value: string(value)})
		}
		out.Properties = append(out.Properties, &api.Property{Type: p.Type, Value: string(p.Value)})
	}
	return out
}

// wireContract encodes the same messages with the encoder of this package.
func wireContract(p *bundles.Package) (contract, error) {
	e := &encoder{pkg: p, deprecated: deprecations(p), bundles: make(map[string]*encodedBundle)}
	out := &encodedPackage{name: p.Name, defaultChannel: p.DefaultChannel}
	var all, entries contract
	for _, b := range p.Bundles {
		facts, err := bundles.ParseCheckedProperties(b.Properties)
		if err != nil {
			return nil, err
		}
		encoded, err := bundleFacts(b, facts)
		if err != nil {
			return nil, err
		}
		all = append(all, encoded)
		e.bundles[b.Name] = &encodedBundle{name: b.Name}
	}
	for _, ch := range p.Channels {
		head, err := ch.Head()
		if err != nil {
			return nil, err
		}
		encoded := encodedChannel{name: ch.Name}
		for i := range ch.Entries {
			entry, err := e.entry(ch, &ch.Entries[i])
			if err == nil {
				err = entry.encodeEdges(p.Name, ch.Name, false, nil)
			}
			if err != nil {
				return nil, err
			}
			if ch.Entries[i].Name == head.Name {
				encoded.head = i
			}
			entries = append(append(entries, entry.message[:entry.unary], entry.message[entry.unary:]), entry.edges...)
			encoded.entries = append(encoded.entries, entry)
		}
		out.channels = append(out.channels, encoded)
	}
	err := e.replies(out)
	return slices.Concat(all, entries, contract{out.reply, out.listed}), err
}

// failer is a test of package testing or rapid.
type failer interface {
	Errorf(format string, args ...any)
}

// compareContracts compares both encodings.
func compareContracts(t failer, p *bundles.Package) {
	want, wantErr := typedContract(p)
	got, err := wireContract(p)
	if (err == nil) != (wantErr == nil) {
		t.Errorf("package %q: error %v, with the generated types %v", p.Name, err, wantErr)
	}
	if err == nil && !slices.EqualFunc(want, got, bytes.Equal) {
		t.Errorf("package %q:\n got %q\nwant %q", p.Name, got, want)
	}
}

// TestContract compares the encoding of all packages of a real catalog with the generated types,
// and decodes it again.
func TestContract(t *testing.T) {
	for _, name := range []string{realcatalogs.Metadata, realcatalogs.Objects} {
		t.Run(name, func(t *testing.T) {
			r := open(t, os.DirFS(realcatalogs.Dir(t, name)))
			for _, name := range r.Packages() {
				part, err := r.Package(t.Context(), name)
				if err != nil {
					t.Fatal(err)
				}
				for _, p := range part.Packages {
					compareContracts(t, p)
				}
			}
		})
	}
}

// TestContractOfAnything generates packages with names and values that real ones lack.
func TestContractOfAnything(t *testing.T) {
	text := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"", "a", "\xff", strings.Repeat("x", 300)}))
	bundle := rapid.Custom(func(t *rapid.T) *bundles.Bundle {
		b := &bundles.Bundle{Name: text.Draw(t, "name"), Image: text.Draw(t, "image")}
		add := func(kind string, value any) {
			encoded, err := encodeJSON(value)
			if err != nil {
				t.Fatal(err)
			}
			b.Properties = append(b.Properties, bundles.Property{Type: kind, Value: encoded})
		}
		add(bundles.TypePackage, bundles.PackageProperty{PackageName: "p", Version: text.Draw(t, "version")})
		for range rapid.IntRange(0, 5).Draw(t, "properties") {
			gvk := bundles.GVK{Group: text.Draw(t, "group"), Version: text.Draw(t, "version"), Kind: text.Draw(t, "kind")}
			switch rapid.IntRange(0, 4).Draw(t, "property") {
			case 0:
				add(bundles.TypeGVK, gvk)
			case 1:
				add(bundles.TypeGVKRequired, gvk)
			case 2:
				add(bundles.TypePackageRequired, bundles.PackageRequired{PackageName: gvk.Group, VersionRange: gvk.Version})
			case 3:
				add(bundles.TypeCSVMetadata, map[string]string{"displayName": gvk.Kind})
			default:
				add(text.Draw(t, "type"), gvk.Kind)
			}
		}
		return b
	})
	rapid.Check(t, func(t *rapid.T) {
		p := &bundles.Package{Name: text.Draw(t, "package"), DefaultChannel: text.Draw(t, "default")}
		p.Bundles = rapid.SliceOfNDistinct(bundle, 1, 4, func(b *bundles.Bundle) string { return b.Name }).Draw(t, "bundles")
		for range rapid.IntRange(1, 3).Draw(t, "channels") {
			ch := &bundles.Channel{Name: text.Draw(t, "channel")}
			for i, b := range p.Bundles {
				e := bundles.Entry{Name: b.Name, SkipRange: text.Draw(t, "range"), Skips: rapid.SliceOfN(text, 0, 2).Draw(t, "skips")}
				if i > 0 {
					e.Replaces = p.Bundles[i-1].Name
				}
				ch.Entries = append(ch.Entries, e)
			}
			p.Channels = append(p.Channels, ch)
		}
		for _, r := range []bundles.Reference{
			{Schema: bundles.SchemaPackage}, {Schema: bundles.SchemaChannel, Name: p.Channels[0].Name}, {Schema: bundles.SchemaBundle, Name: p.Bundles[0].Name},
		} {
			if rapid.Bool().Draw(t, r.Schema) {
				p.Deprecations = append(p.Deprecations, bundles.DeprecationList{Entries: []bundles.Deprecation{{Reference: r, Message: text.Draw(t, "message")}}})
			}
		}
		if _, err := bundles.ParseCheckedProperties(p.Bundles[0].Properties); err != nil {
			t.Skip("a property of a wrong shape")
		}
		compareContracts(t, p)
	})
}

// FuzzReadFields decodes arbitrary bytes as messages, and checks that this package and the
// generated types agree on what is valid.
func FuzzReadFields(f *testing.F) {
	seed, err := marshalOptions.Marshal(&api.Package{Name: "p", DefaultChannelName: "c", Channels: []*api.Channel{{Name: "c", Deprecation: &api.Deprecation{Message: "old"}}}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(seed)
	f.Fuzz(func(t *testing.T, message []byte) {
		got, err := decodePackage(message)
		var want api.Package
		if proto.Unmarshal(message, &want) != nil {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		if got.Package != want.GetName() || got.DefaultChannel != want.GetDefaultChannelName() || len(got.Channels) != len(want.GetChannels()) {
			t.Errorf("got %+v, want %s", got, &want)
		}
	})
}

// BenchmarkContract encodes all messages of a real catalog except the manifests, with this package
// and with the generated types.
func BenchmarkContract(b *testing.B) {
	catalog, err := fbc.Load(b.Context(), os.DirFS(realcatalogs.Dir(b, realcatalogs.Metadata)), fbc.Options{})
	if err != nil {
		b.Fatal(err)
	}
	for _, way := range []struct {
		name   string
		encode func(*bundles.Package) (contract, error)
	}{{"wire", wireContract}, {"types", typedContract}} {
		b.Run(fmt.Sprintf("by=%s", way.name), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				for _, p := range catalog.Packages {
					if _, err := way.encode(p); err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}
