package catalogs

import (
	"errors"
	"math/rand/v2"
	"testing"

	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/chandlery/chandlery/proto/api"
	registryv1 "github.com/chandlery/chandlery/proto/chandlery/registry/v1"
	"github.com/chandlery/chandlery/supervisor/plansteps"
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
	a := newSnapshotBuilder(maxBytes)
	for _, b := range entries {
		if err := a.addListed(b); err != nil {
			t.Fatal(err)
		}
	}
	for _, p := range packages {
		if err := a.addPackage(p); err != nil {
			t.Fatal(err)
		}
	}
	return a.snapshot("")
}

func TestSnapshotBuilder(t *testing.T) {
	s := assemble(t, messages(), packages())
	fan, lamp := s.Content.Package("fan"), s.Content.Package("lamp")
	if len(s.Content.Packages()) != 2 || fan == nil || lamp == nil {
		t.Fatalf("packages %+v", s.Content.Packages())
	}
	if fan.DefaultChannel != "stable" || fan.Deprecation != "use lamp" || fan.Channel("stable").Deprecation != "old" || fan.Bundle("fan.v1").Image == "" {
		t.Errorf("package %+v", fan)
	}
	if lamp.Deprecation != "" || lamp.Channel("stable").Deprecation != "" || len(lamp.Channels) != 2 || len(lamp.Bundles) != 2 {
		t.Errorf("package %+v", lamp)
	}
	head := lamp.Channel("stable").Chain[0]
	// Old catalogs without properties have the version in another field.
	if head.Bundle.Name != "lamp.v2" || head.Replaces != "lamp.v1" || head.SkipRange != "<2.0.0" || head.Bundle.Subject.Version.String() != "2.0.0" {
		t.Errorf("head %+v of %+v", head, head.Bundle)
	}
	for _, tt := range []struct{ pkg, bundle, want string }{
		{"lamp", "lamp.v1", plansteps.Digest([]string{"{1}"})},
		{"lamp", "lamp.v2", plansteps.Digest([]string{"{2}"})},
		{"fan", "fan.v1", ""},
		{"fan", "lamp.v1", ""},
	} {
		if got := s.Manifests(tt.pkg, tt.bundle); got != tt.want {
			t.Errorf("Manifests(%s, %s) = %q, want %q", tt.pkg, tt.bundle, got, tt.want)
		}
	}
}

func TestManifestsAreRemembered(t *testing.T) {
	s := assemble(t, append(messages(), &api.Bundle{CsvName: "rug.v1", PackageName: "rug", ChannelName: "stable", Version: "1.0.0"}), packages())
	first, second := plansteps.Digest([]string{"{1}"}), plansteps.Digest([]string{"{2}"})
	for i, tt := range []struct {
		pkg, bundle, digest string
		changed             bool
		want                string
	}{
		{"lamp", "lamp.v1", second, false, first}, // as listed
		{"fan", "fan.v1", first, false, ""},       // in an image
		{"lamp", "none", first, false, ""},
		{"rug", "rug.v1", "nonsense", false, ""},
		{"rug", "rug.v1", first, false, first},
		{"rug", "rug.v1", first, false, first},
		{"rug", "rug.v1", second, true, second},
	} {
		if changed := s.setManifests(tt.pkg, tt.bundle, tt.digest); changed != tt.changed || s.Manifests(tt.pkg, tt.bundle) != tt.want {
			t.Errorf("%d: changed %v, Manifests(%s, %s) = %s", i, changed, tt.pkg, tt.bundle, s.Manifests(tt.pkg, tt.bundle))
		}
	}
	if empty := (&Snapshot{}); empty.Manifests("lamp", "lamp.v1") != "" || empty.setManifests("lamp", "lamp.v1", first) || empty.Bytes() != 0 {
		t.Error("an empty snapshot knows something")
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

// TestDigestTellsTypesApart checks that messages of different types with the same encoding have
// different digests.
func TestDigestTellsTypesApart(t *testing.T) {
	bundle := &api.Bundle{CsvName: "lamp.v1", PackageName: "lamp", ChannelName: "stable"}
	text, err := proto.MarshalOptions{Deterministic: true}.Marshal(bundle)
	if err != nil {
		t.Fatal(err)
	}
	var paged registryv1.Bundle
	if err := proto.Unmarshal(text, &paged); err != nil {
		t.Fatal(err)
	}
	list, pages := newSnapshotBuilder(maxBytes), newSnapshotBuilder(maxBytes)
	if err := errors.Join(list.addDigest(bundle), pages.addDigest(&paged)); err != nil {
		t.Fatal(err)
	}
	if list.sums[0] == pages.sums[0] {
		t.Error("both have the same digest")
	}
}
