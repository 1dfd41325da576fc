package catalogs

import (
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/chandlery/chandlery/bundles"
	"github.com/chandlery/chandlery/proto/api"
	"github.com/chandlery/chandlery/supervisor/plan"
)

func messages() []*api.Bundle {
	return []*api.Bundle{
		{CsvName: "lamp.v2", PackageName: "lamp", ChannelName: "stable", Version: "2.0.0", Replaces: "lamp.v1", Skips: []string{"lamp.v1.5"}, SkipRange: "<2.0.0", Object: []string{"{2}"}},
		{CsvName: "lamp.v1", PackageName: "lamp", ChannelName: "stable", Version: "1.0.0", Object: []string{"{1}"}},
		{CsvName: "lamp.v2", PackageName: "lamp", ChannelName: "beta", Version: "2.0.0", Object: []string{"{2}"}},
		{
			CsvName: "fan.v1", PackageName: "fan", ChannelName: "stable", Version: "1.0.0", BundlePath: "registry.example/fan:1",
			Properties: []*api.Property{{Type: "olm.package", Value: `{"packageName":"fan","version":"1.0.0"}`}, {Type: "olm.gvk", Value: `{}`}},
		},
	}
}

func packages() []*api.Package {
	return []*api.Package{
		{Name: "fan", DefaultChannelName: "stable", Deprecation: &api.Deprecation{Message: "use lamp"}, Channels: []*api.Channel{{Name: "stable", Deprecation: &api.Deprecation{Message: "old"}}}},
		{Name: "lamp", DefaultChannelName: "stable", Channels: []*api.Channel{{Name: "stable"}, {Name: "beta"}}},
	}
}

type fataler interface {
	Helper()
	Fatal(args ...any)
}

func assemble(t fataler, entries []*api.Bundle, packages []*api.Package) *Snapshot {
	t.Helper()
	a := newAssembly()
	for _, b := range entries {
		if err := a.addBundle(b); err != nil {
			t.Fatal(err)
		}
	}
	for _, p := range packages {
		if err := a.addPackage(p); err != nil {
			t.Fatal(err)
		}
	}
	return a.snapshot()
}

func TestAssembly(t *testing.T) {
	s := assemble(t, messages(), packages())
	property := func(kind, value string) bundles.Property { return bundles.Property{Type: kind, Value: []byte(value)} }
	want := &bundles.Catalog{Packages: []*bundles.Package{
		{
			Name: "fan", DefaultChannel: "stable",
			Channels: []*bundles.Channel{{Name: "stable", Package: "fan", Entries: []bundles.Entry{{Name: "fan.v1"}}}},
			Bundles: []*bundles.Bundle{{
				Name: "fan.v1", Package: "fan", Image: "registry.example/fan:1",
				Properties: []bundles.Property{property("olm.package", `{"packageName":"fan","version":"1.0.0"}`), property("olm.gvk", `{}`)},
			}},
			Deprecations: []bundles.DeprecationList{{Entries: []bundles.Deprecation{
				{Reference: bundles.Reference{Schema: "olm.package"}, Message: "use lamp"},
				{Reference: bundles.Reference{Schema: "olm.channel", Name: "stable"}, Message: "old"},
			}}},
		},
		{
			Name: "lamp", DefaultChannel: "stable",
			Channels: []*bundles.Channel{
				{Name: "beta", Package: "lamp", Entries: []bundles.Entry{{Name: "lamp.v2"}}},
				{Name: "stable", Package: "lamp", Entries: []bundles.Entry{
					{Name: "lamp.v2", Replaces: "lamp.v1", Skips: []string{"lamp.v1.5"}, SkipRange: "<2.0.0"}, {Name: "lamp.v1"},
				}},
			},
			// A catalog too old for properties gets the one that every bundle has.
			Bundles: []*bundles.Bundle{
				{Name: "lamp.v1", Package: "lamp", Properties: []bundles.Property{property("olm.package", `{"packageName":"lamp","version":"1.0.0"}`)}},
				{Name: "lamp.v2", Package: "lamp", Properties: []bundles.Property{property("olm.package", `{"packageName":"lamp","version":"2.0.0"}`)}},
			},
		},
	}}
	if diff := cmp.Diff(want, s.Content); diff != "" {
		t.Errorf("content (-want +got):\n%s", diff)
	}
	for _, tt := range []struct{ pkg, bundle, want string }{
		{"lamp", "lamp.v1", plan.Digest([]string{"{1}"})},
		{"lamp", "lamp.v2", plan.Digest([]string{"{2}"})},
		{"fan", "fan.v1", ""},
		{"fan", "lamp.v1", ""},
	} {
		if got := s.Manifests(tt.pkg, tt.bundle); got != tt.want {
			t.Errorf("Manifests(%s, %s) = %q, want %q", tt.pkg, tt.bundle, got, tt.want)
		}
	}
}

func TestDigestDependsOnWhatIsServedOnly(t *testing.T) {
	want := assemble(t, messages(), packages()).Digest
	rapid.Check(t, func(t *rapid.T) {
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		entries, packages := messages(), packages()
		random.Shuffle(len(entries), func(i, j int) { entries[i], entries[j] = entries[j], entries[i] })
		random.Shuffle(len(packages), func(i, j int) { packages[i], packages[j] = packages[j], packages[i] })
		if got := assemble(t, entries, packages).Digest; got != want {
			t.Fatal("another order gives another digest")
		}
		switch rapid.IntRange(0, 3).Draw(t, "change") {
		case 0:
			entries[0].Version += "-rc"
		case 1:
			entries[0].Object = append(entries[0].Object, "{}")
		case 2:
			packages[0].DefaultChannelName += "x"
		case 3:
			entries = entries[1:]
		}
		if assemble(t, entries, packages).Digest == want {
			t.Fatal("other content gives the same digest")
		}
	})
}
