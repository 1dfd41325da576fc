package content_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/chandlery/chandlery/bundles"
	"github.com/chandlery/chandlery/supervisor/resolution/constraint"
	"github.com/chandlery/chandlery/supervisor/resolution/content"
)

const plenty = 1 << 30

// listed returns an entry of channel stable of package crate.
func listed(name, replaces string, skips ...string) content.ChannelEntry {
	return content.ChannelEntry{Package: "crate", Channel: "stable", Bundle: name, Replaces: replaces, Skips: skips}
}

func build(t *testing.T, entries ...content.ChannelEntry) *content.Catalog {
	t.Helper()
	b := content.NewBuilder(plenty)
	for _, l := range entries {
		if err := b.Add(l); err != nil {
			t.Fatal(err)
		}
	}
	b.Describe("crate", "stable", "")
	return b.Build()
}

func names(entries []*content.Entry) []string {
	out := make([]string, 0, len(entries))
	for _, entry := range entries {
		out = append(out, entry.Bundle.Name)
	}
	return out
}

func TestChain(t *testing.T) {
	for name, test := range map[string]struct {
		entries []content.ChannelEntry
		want    []string
		wantErr string
	}{
		"one entry": {
			entries: []content.ChannelEntry{listed("a", "")}, want: []string{"a"},
		},
		"head first": {
			entries: []content.ChannelEntry{listed("a", ""), listed("c", "b"), listed("b", "a")}, want: []string{"c", "b", "a"},
		},
		"skipped entries are left out and what is below them is not": {
			entries: []content.ChannelEntry{listed("c", "b", "b"), listed("b", "a"), listed("a", "")}, want: []string{"c", "a"},
		},
		"an entry that is only skipped is no chain of its own": {
			entries: []content.ChannelEntry{listed("b", "a", "x"), listed("x", ""), listed("a", "")}, want: []string{"b", "a"},
		},
		"the chain ends where the channel does not have what is replaced": {
			entries: []content.ChannelEntry{listed("b", "a"), listed("a", "missing")}, want: []string{"b", "a"},
		},
		"a cycle without a head": {
			entries: []content.ChannelEntry{listed("a", "b"), listed("b", "a")},
			wantErr: `no channel heads (entries not replaced by another entry) found in channel "stable" of package "crate"`,
		},
		"an entry that replaces itself": {
			entries: []content.ChannelEntry{listed("a", "a")},
			wantErr: `no channel heads (entries not replaced by another entry) found in channel "stable" of package "crate"`,
		},
		"a cycle below a head": {
			entries: []content.ChannelEntry{listed("c", "b"), listed("b", "a"), listed("a", "b")},
			wantErr: `a cycle exists in the chain of replacement beginning with "c" in channel "stable" of package "crate"`,
		},
		"several heads": {
			entries: []content.ChannelEntry{listed("b", "a"), listed("a", ""), listed("d", "c"), listed("c", ""), listed("e", "")},
			wantErr: "a unique replacement chain within a channel is required to determine the relative order between channel entries, " +
				`but 3 replacement chains were found in channel "stable" of package "crate": b...a, d...c, e`,
		},
		"very many heads": {
			entries: []content.ChannelEntry{
				listed("1", ""), listed("2", ""), listed("3", ""), listed("4", ""), listed("5", ""), listed("6", ""), listed("7\n", ""),
			},
			wantErr: "a unique replacement chain within a channel is required to determine the relative order between channel entries, " +
				`but 7 replacement chains were found in channel "stable" of package "crate": 1, 2, 3, 4, 5, and 2 more`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			channel := build(t, test.entries...).Package("crate").Channel("stable")
			if channel.Err != nil || test.wantErr != "" {
				if fmt.Sprint(channel.Err) != test.wantErr {
					t.Fatalf("error\n got %v\nwant %s", channel.Err, test.wantErr)
				}
				if channel.Chain != nil {
					t.Errorf("the channel has a chain in spite of the error: %v", names(channel.Chain))
				}
				return
			}
			if diff := cmp.Diff(test.want, names(channel.Chain)); diff != "" {
				t.Errorf("chain (-want +got):\n%s", diff)
			}
			for _, entry := range channel.Entries {
				if want := slices.Index(test.want, entry.Bundle.Name); entry.Position != want {
					t.Errorf("entry %s has position %d, want %d", entry.Bundle.Name, entry.Position, want)
				}
			}
		})
	}
}

func TestBuilder(t *testing.T) {
	gvk := bundles.GVK{Group: "g", Version: "v1", Kind: "K"}
	properties := []constraint.Property{
		{Type: "olm.package", Value: `{"packageName":"crate","version":"1.0.0"}`},
		{Type: "olm.gvk", Value: `{"group":"g","version":"v1","kind":"K"}`},
		{Type: "olm.label", Value: `{"label":"blue"}`},
		{Type: "olm.csv.metadata", Value: `{"description":"long"}`},
		{Type: "olm.bundle.object", Value: `{"data":"e30="}`},
		{Type: "made.up", Value: `1`},
		{Type: "made.up", Value: `"` + strings.Repeat("x", 20<<10) + `"`},
		{Type: "olm.package.required", Value: `{"packageName":"other","versionRange":">=1.0.0"}`},
	}
	b := content.NewBuilder(plenty)
	b.DeprecateBundle("crate", "a", "old")
	b.Describe("crate", "stable", "all of it")
	b.Describe("empty", "stable", "")
	for _, channel := range []string{"stable", "alpha"} {
		err := b.Add(content.ChannelEntry{Package: "crate", Channel: channel, Bundle: "a", Image: "i", SkipRange: "<1.0.0", Properties: properties})
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := b.Add(content.ChannelEntry{Package: "crate", Channel: "alpha", Bundle: "bad", Properties: []constraint.Property{{Type: "olm.gvk", Value: `[]`}}}); err != nil {
		t.Fatal(err)
	}
	b.DeprecateChannel("crate", "alpha", "not this one")
	c := b.Build()

	if c.Package("empty") != nil || len(c.Packages()) != 1 {
		t.Error("a package without channels is there")
	}
	p := c.Package("crate")
	if p.DefaultChannel != "stable" || p.Deprecation != "all of it" || p.Channel("alpha").Deprecation != "not this one" || p.Channel("stable").Deprecation != "" {
		t.Errorf("package %+v", p)
	}
	if len(p.Bundles) != 2 || p.Bundle("a") != p.Channel("alpha").Entry("a").Bundle || p.Bundle("a") != p.Channel("stable").Entry("a").Bundle {
		t.Error("channels do not share their bundle")
	}
	a := p.Bundle("a")
	if a.Err != nil || a.Package != p || a.Deprecation != "old" || a.Image != "i" || a.Subject.Package != "crate" || a.Subject.Version.String() != "1.0.0" {
		t.Errorf("bundle %+v", a)
	}
	kept := []string{"olm.package", "olm.gvk", "olm.label", "made.up", "olm.package.required"}
	for i, property := range a.Subject.Properties {
		if property.Type != kept[i] {
			t.Errorf("property %d is %s, want %s", i, property.Type, kept[i])
		}
	}
	if len(a.Requires) != 1 || a.Requires[0].Package.Name != "other" {
		t.Errorf("requires %v", a.Requires)
	}
	if got := names(c.Providing(gvk)); !slices.Equal(got, []string{"a", "a"}) || !slices.Equal(names(c.Labelled("blue")), got) {
		t.Errorf("the API is provided by %v, the label borne by %v", got, names(c.Labelled("blue")))
	}
	want := `package "crate", bundle "bad": properties[0] of type "olm.gvk": decoding value: wrong type: it must be an object, found array; ` +
		`ask the publisher of the catalog to fix it`
	if err := p.Bundle("bad").Err; fmt.Sprint(err) != want {
		t.Errorf("error\n got %v\nwant %s", err, want)
	}
}

func TestPackageProperty(t *testing.T) {
	for name, test := range map[string]struct {
		properties  []constraint.Property
		version     string
		wantVersion string
		wantErr     string
	}{
		"is made of the version that the server says": {version: "1.2.3", wantVersion: "1.2.3"},
		"is not made of nothing":                      {wantVersion: "0.0.0"},
		"wins over the server's word": {
			properties: []constraint.Property{{Type: "olm.package", Value: `{"packageName":"crate","version":"2.0"}`}}, version: "1.2.3", wantVersion: "2.0.0",
		},
		"of another package": {
			properties: []constraint.Property{{Type: "olm.package", Value: `{"packageName":"barrel","version":"2.0"}`}},
			wantErr:    `package "crate", bundle "a": property olm.package says that it is of package "barrel"; ask the publisher of the catalog to fix it`,
		},
		"of a version that is none": {
			version: "newest", wantVersion: "0.0.0",
		},
	} {
		t.Run(name, func(t *testing.T) {
			bundle := build(t, content.ChannelEntry{Package: "crate", Channel: "stable", Bundle: "a", Version: test.version, Properties: test.properties}).
				Package("crate").Bundle("a")
			if bundle.Err != nil || test.wantErr != "" {
				if fmt.Sprint(bundle.Err) != test.wantErr {
					t.Fatalf("error\n got %v\nwant %s", bundle.Err, test.wantErr)
				}
				return
			}
			if bundle.Subject.Version.String() != test.wantVersion || bundle.Subject.Package != "crate" {
				t.Errorf("version %s of package %s, want %s of crate", bundle.Subject.Version, bundle.Subject.Package, test.wantVersion)
			}
		})
	}
}

func TestLimit(t *testing.T) {
	b := content.NewBuilder(100_000)
	var err error
	for i := 0; err == nil && i < 10_000; i++ {
		err = b.Add(listed(fmt.Sprintf("crate.v%d", i), ""))
	}
	const want = "the catalog is too large: its content takes more than 100000 bytes of memory, the limit for one catalog; " +
		"divide its packages among several catalogs"
	if fmt.Sprint(err) != want {
		t.Errorf("error\n got %v\nwant %s", err, want)
	}
}

func TestFromCatalogWithoutBundle(t *testing.T) {
	c, err := content.FromCatalog(&bundles.Catalog{Packages: []*bundles.Package{{
		Name:     "crate",
		Channels: []*bundles.Channel{{Name: "stable", Package: "crate", Entries: []bundles.Entry{{Name: "b", Replaces: "a"}, {Name: "a"}}}},
		Bundles:  []*bundles.Bundle{{Name: "a", Package: "crate"}},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	const want = `package "crate", bundle "b": a channel lists it but the package does not have it; ask the publisher of the catalog to fix it`
	if err := c.Package("crate").Bundle("b").Err; fmt.Sprint(err) != want {
		t.Errorf("error\n got %v\nwant %s", err, want)
	}
	if err := c.Package("crate").Bundle("a").Err; err != nil {
		t.Errorf("another bundle suffers: %v", err)
	}
}

// describe formats all fields of a catalog.
func describe(c *content.Catalog) string {
	var b strings.Builder
	for _, p := range c.Packages() {
		fmt.Fprintf(&b, "package %s default %s %s\n", p.Name, p.DefaultChannel, p.Deprecation)
		for _, bundle := range p.Bundles {
			fmt.Fprintf(&b, " bundle %s %s %v %v %v %v\n", bundle.Name, bundle.Image, bundle.Deprecation, bundle.Subject, bundle.Requires, bundle.Err)
		}
		for _, channel := range p.Channels {
			fmt.Fprintf(&b, " channel %s %s %v %v\n", channel.Name, channel.Deprecation, names(channel.Chain), channel.Err)
			for _, e := range channel.Entries {
				fmt.Fprintf(&b, "  entry %s %d %s %v %s\n", e.Bundle.Name, e.Position, e.Replaces, e.Skips, e.SkipRange)
			}
		}
	}
	for _, kind := range kinds {
		for _, e := range c.Providing(bundles.GVK{Group: "g", Version: "v1", Kind: kind}) {
			fmt.Fprintf(&b, "%s by %s/%s/%s\n", kind, e.Channel.Package.Name, e.Channel.Name, e.Bundle.Name)
		}
	}
	return b.String()
}

var kinds = []string{"A", "B", "C"}

// TestOrder checks that the order of the entries does not change the catalog.
func TestOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		entries := rapid.SliceOfNDistinct(rapid.Custom(drawListed), 0, 20, func(l content.ChannelEntry) [3]string {
			return [3]string{l.Package, l.Channel, l.Bundle}
		}).Draw(t, "entries")
		shuffled := rapid.Permutation(entries).Draw(t, "shuffled")
		first, second := content.NewBuilder(plenty), content.NewBuilder(plenty)
		for i := range entries {
			if first.Add(entries[i]) != nil || second.Add(shuffled[i]) != nil {
				t.Fatal("the catalog is too large")
			}
		}
		a, b := first.Build(), second.Build()
		if diff := cmp.Diff(describe(a), describe(b)); diff != "" {
			t.Fatal(diff)
		}
		if a.Bytes() != b.Bytes() {
			t.Fatalf("%d bytes, and %d in another order", a.Bytes(), b.Bytes())
		}
	})
}

// drawListed draws an entry. Its bundle fields depend only on the drawn bundle.
func drawListed(t *rapid.T) content.ChannelEntry {
	name := rapid.SampledFrom([]string{"a", "b", "c", "d"})
	l := content.ChannelEntry{
		Package: rapid.SampledFrom([]string{"crate", "barrel"}).Draw(t, "package"),
		Channel: rapid.SampledFrom([]string{"stable", "alpha"}).Draw(t, "channel"),
		Bundle:  name.Draw(t, "bundle"), Replaces: rapid.OneOf(name, rapid.Just("")).Draw(t, "replaces"),
		Skips: rapid.SliceOfN(name, 0, 2).Draw(t, "skips"),
	}
	l.Version = fmt.Sprintf("1.0.%d", l.Bundle[0])
	l.Properties = []constraint.Property{{Type: "olm.gvk", Value: fmt.Sprintf(`{"group":"g","version":"v1","kind":%q}`, kinds[l.Bundle[0]%3])}}
	return l
}
