package index

import (
	"testing"

	"github.com/chandlery/chandlery/bundles"
)

func TestDigest(t *testing.T) {
	t.Parallel()
	digest := func(t *testing.T, change func(*bundles.Package)) string {
		t.Helper()
		p := &bundles.Package{
			Name: "lamp", DefaultChannel: "stable",
			Channels: []*bundles.Channel{{Name: "stable", Package: "lamp", Entries: []bundles.Entry{{Name: "lamp.v1"}}}},
			Bundles: []*bundles.Bundle{{Name: "lamp.v1", Package: "lamp", Image: "example.com/lamp:v1", Properties: []bundles.Property{
				{Type: bundles.TypePackage, Value: []byte(`{"packageName":"lamp","version":"1.0.0"}`)},
			}}},
		}
		change(p)
		x, err := Build(t.Context(), &bundles.Catalog{Packages: []*bundles.Package{p}})
		if err != nil {
			t.Fatal(err)
		}
		return x.Digest()
	}
	unchanged := digest(t, func(*bundles.Package) {})
	if again := digest(t, func(*bundles.Package) {}); again != unchanged {
		t.Errorf("the same content has the digests %s and %s", unchanged, again)
	}
	for name, change := range map[string]func(*bundles.Package){
		"an entry changes": func(p *bundles.Package) { p.Channels[0].Entries[0].SkipRange = "<1.0.0" },
		"the image changes": func(p *bundles.Package) {
			p.Bundles[0].Image = "example.com/lamp:v2"
		},
		"a package is deprecated": func(p *bundles.Package) {
			p.Deprecations = []bundles.DeprecationList{{Entries: []bundles.Deprecation{
				{Reference: bundles.Reference{Schema: bundles.SchemaPackage}, Message: "use a torch"},
			}}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if changed := digest(t, change); changed == unchanged {
				t.Error("the digest stays the same")
			}
		})
	}
}
