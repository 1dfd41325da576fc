package diff

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chandlery/chandlery/bundles"
	"github.com/chandlery/chandlery/bundles/outline"
)

var api = bundles.GVK{Group: "g", Version: "v1", Kind: "K"}

func property(kind, value string) bundles.Property {
	return bundles.Property{Type: kind, Value: json.RawMessage(value)}
}

// catalog returns a catalog that cases change. v3 is the head of stable, and candidate has one bundle.
func catalog() *outline.Catalog {
	entry := func(name, version, replaces string) *outline.Entry {
		return &outline.Entry{
			Name: name, Version: version, Image: "i:" + version, Replaces: replaces, Provides: []bundles.GVK{api},
			Properties: []bundles.Property{property("a", "1"), property("b", "2")}, Manifests: "m",
		}
	}
	return &outline.Catalog{Packages: []*outline.Package{{
		Name: "p", DefaultChannel: "stable",
		Channels: []*outline.Channel{
			{Name: "candidate", Head: "v3", Entries: []*outline.Entry{entry("v3", "3.0.0", "")}},
			{Name: "stable", Head: "v3", Entries: []*outline.Entry{
				entry("v1", "1.0.0", "v0"), entry("v2", "2.0.0", "v1"), entry("v3", "3.0.0", "v2"),
			}},
		},
	}}}
}

func TestCatalogs(t *testing.T) {
	cases := map[string]struct {
		reason string
		change func(c *outline.Catalog, p *outline.Package, stable *outline.Channel)
		want   []string
	}{
		"Same": {reason: "nothing is different", change: func(*outline.Catalog, *outline.Package, *outline.Channel) {}},
		"PackageAdded": {
			reason: "a new package is one change, whatever it holds",
			change: func(c *outline.Catalog, p *outline.Package, _ *outline.Channel) {
				q := *p
				q.Name = "q"
				c.Packages = append(c.Packages, &q)
			},
			want: []string{"q +package: added (2 channels, 3 bundles, head v3)"},
		},
		"PackageRemoved": {
			reason: "it leaves behind who has installed it",
			change: func(c *outline.Catalog, _ *outline.Package, _ *outline.Channel) { c.Packages = nil },
			want:   []string{"!p -package: removed (2 channels, 3 bundles, head v3); who has installed it gets no updates any more"},
		},
		"DefaultChannel": {
			reason: "new subscriptions get other bundles",
			change: func(_ *outline.Catalog, p *outline.Package, _ *outline.Channel) { p.DefaultChannel = "candidate" },
			want:   []string{"p ~package: default channel stable → candidate"},
		},
		"ChannelRemoved": {
			reason: "its bundles stay in another channel",
			change: func(_ *outline.Catalog, p *outline.Package, _ *outline.Channel) { p.Channels = p.Channels[1:] },
			want:   []string{"!p -channel candidate: removed (1 entry, head v3); who follows it gets no updates any more"},
		},
		"ChannelAdded": {
			reason: "bundles that were there are not new",
			change: func(_ *outline.Catalog, p *outline.Package, s *outline.Channel) {
				n := *s
				n.Name = "x"
				p.Channels = append(p.Channels, &n)
			},
			want: []string{"p +channel x: added (3 entries, head v3)"},
		},
		"HeadMoved": {
			reason: "the usual release",
			change: func(_ *outline.Catalog, _ *outline.Package, s *outline.Channel) {
				s.Entries = append(s.Entries, &outline.Entry{Name: "v4", Version: "4.0.0", Replaces: "v3", Provides: []bundles.GVK{api}})
				s.Head = "v4"
			},
			want: []string{"p ~channel stable: head v3 → v4", "p +bundle v4: added (in stable)"},
		},
		"HeadWithdrawn": {
			reason: "who has the old head stays on it",
			change: func(_ *outline.Catalog, _ *outline.Package, s *outline.Channel) {
				s.Entries, s.Head = s.Entries[:2], "v2"
			},
			want: []string{
				"!p ~channel stable: head v3 → v2; version 2.0.0 is lower than 3.0.0",
				"!p -channel stable, bundle v3: nothing upgrades from it any more; who has it installed stays on it: let an entry replace or skip it",
				"p -channel stable, bundle v3: left the channel",
			},
		},
		"TailRemovedAndReplaced": {
			reason: "who has v1 still gets to v2, but nobody gets on from v0",
			change: func(_ *outline.Catalog, _ *outline.Package, s *outline.Channel) { s.Entries = s.Entries[1:] },
			want: []string{
				"!p -channel stable, bundle v0: nothing upgrades from it any more; who has it installed stays on it: let an entry replace or skip it",
				"p -bundle v1: removed (was in stable)",
			},
		},
		"RemovedButInRange": {
			reason: "a range covers the versions of what has been removed",
			change: func(_ *outline.Catalog, _ *outline.Package, s *outline.Channel) {
				s.Entries = s.Entries[2:]
				s.Entries[0].SkipRange, s.Entries[0].Skips = "<3.0.0", []string{"v0"}
			},
			want: []string{
				"p ~channel stable, bundle v3: replaces v2 → replaces v2, skips v0, skipRange <3.0.0",
				"p -bundle v1: removed (was in stable)",
				"p -bundle v2: removed (was in stable)",
			},
		},
		"UnknownVersionInNoRange": {
			reason: "which version v0 had is not known, so no range is known to cover it",
			change: func(_ *outline.Catalog, _ *outline.Package, s *outline.Channel) {
				s.Entries = s.Entries[2:]
				s.Entries[0].SkipRange = "<3.0.0"
			},
			want: []string{
				"!p -channel stable, bundle v0: nothing upgrades from it any more; who has it installed stays on it: let an entry replace or skip it",
				"p ~channel stable, bundle v3: replaces v2 → replaces v2, skipRange <3.0.0",
				"p -bundle v1: removed (was in stable)",
				"p -bundle v2: removed (was in stable)",
			},
		},
		"Entered": {
			reason: "a bundle of another channel is promoted",
			change: func(_ *outline.Catalog, p *outline.Package, s *outline.Channel) {
				p.Channels[0].Entries = append([]*outline.Entry{s.Entries[1]}, p.Channels[0].Entries...)
				p.Channels[0].Entries[1].Replaces = "v2"
			},
			want: []string{
				"p +channel candidate, bundle v2: entered the channel",
				"p ~channel candidate, bundle v3: upgrades from nothing → replaces v2",
			},
		},
		"APIRemoved": {
			reason: "a head without an API breaks its users",
			change: func(_ *outline.Catalog, _ *outline.Package, s *outline.Channel) {
				s.Entries[2].Provides = nil
			},
			want: []string{"!p -channel stable, bundle v3: the head no longer provides g/v1, Kind=K; who uses it cannot upgrade to this head without harm"},
		},
		"BundleChanged": {
			reason: "what is published should not change, so each change is named",
			change: func(_ *outline.Catalog, _ *outline.Package, s *outline.Channel) {
				e := s.Entries[0]
				e.Image, e.Manifests, e.Properties = "j", "n", []bundles.Property{property("a", "1"), property("c", "3")}
			},
			want: []string{
				"p ~bundle v1: image i:1.0.0 → j", "p ~bundle v1: properties changed (b, c)", "p ~bundle v1: manifests changed",
			},
		},
		"PropertyOrder": {
			reason: "even an order may mean something",
			change: func(_ *outline.Catalog, _ *outline.Package, s *outline.Channel) {
				s.Entries[0].Properties = []bundles.Property{property("b", "2"), property("a", "1")}
			},
			want: []string{"p ~bundle v1: properties changed (order)"},
		},
		"Deprecations": {
			reason: "of each kind of object",
			change: func(_ *outline.Catalog, p *outline.Package, s *outline.Channel) {
				p.Deprecation, s.Deprecation, s.Entries[0].Deprecation = "x", "y", "z"
			},
			want: []string{"p ~package: deprecated: x", "p ~channel stable: deprecated: y", "p ~bundle v1: deprecated: z"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			a, b := catalog(), catalog()
			tc.change(b, b.Packages[0], b.Packages[0].Channels[1])
			var got []string
			for _, c := range Catalogs(a, b) {
				line := c.Package + " " + c.Sign() + c.String()
				if c.Breaking != "" {
					line = "!" + line
				}
				got = append(got, line)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestDeprecationChanges changes a deprecation message and then removes it.
func TestDeprecationChanges(t *testing.T) {
	a, b := catalog(), catalog()
	a.Packages[0].Deprecation, b.Packages[0].Deprecation = "old", "new"
	a.Packages[0].Channels[0].Deprecation = "x"
	got := Catalogs(a, b)
	if len(got) != 2 || got[0].Kind != DeprecationChanged || got[1].Kind != NoLongerDeprecated {
		t.Errorf("got %v", got)
	}
}

func TestPrint(t *testing.T) {
	changes := []Change{
		{Kind: PackageAdded, Package: "p_q\x1b[2J", To: "1 *bundle*"},
		{Kind: ChannelRemoved, Package: "r", Channel: "c\n", Breaking: "why"},
	}
	if got, want := Text(changes), "p_q�[2J\n  + package: added (1 *bundle*)\nr\n !- channel c : removed; why\n2 changes in 2 packages, 1 breaking\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	want := "**2 changes in 2 packages, 1 breaking**\n\n### p\\_q�\\[2J\n\n- package: added (1 \\*bundle\\*)\n\n### r\n\n- **Breaking:** channel c : removed; why\n"
	if got := Markdown(changes); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if !strings.HasPrefix(Text(nil), "no differences") || !strings.HasPrefix(Markdown(nil), "No differences") {
		t.Error("no differences are said in words")
	}
}
