package selection_test

import (
	"maps"
	"os"
	"slices"
	"testing"

	"github.com/blang/semver/v4"

	"github.com/chandlery/chandlery/bundles"
	"github.com/chandlery/chandlery/bundles/fbc"
	"github.com/chandlery/chandlery/bundles/index"
	"github.com/chandlery/chandlery/bundles/selection"
	"github.com/chandlery/chandlery/test/realcatalogs"
)

func openReal(t *testing.T) *fbc.Reader {
	t.Helper()
	r, err := fbc.Open(t.Context(), os.DirFS(realcatalogs.Dir(t, realcatalogs.Metadata)), fbc.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	return r
}

// TestSelectRealCatalog selects parts of a real catalog. The selected part must be valid, and every
// bundle that could upgrade to a head before still can.
func TestSelectRealCatalog(t *testing.T) {
	r := openReal(t)
	heads, err := selection.Open(t.Context(), r, &selection.Selection{Heads: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range r.Packages() {
		whole, err := r.Package(t.Context(), name)
		if err != nil || whole.Validate() != nil {
			t.Fatalf("package %s: %v, %v", name, err, whole.Validate())
		}
		for _, p := range whole.Packages {
			kept, err := heads.Kept(p)
			if err != nil {
				t.Fatalf("package %s: %v", name, err)
			}
			checkHeads(t, p, kept)
			checkRange(t, r, p)
		}
	}
}

// checkHeads compares which bundles can upgrade to the heads of a package's channels.
func checkHeads(t *testing.T, p *bundles.Package, kept *selection.Kept) {
	t.Helper()
	for i, ch := range p.Channels {
		head := kept.Channels[i].Entries[0]
		if before, err := ch.Head(); err != nil || before.Name != head.Name || len(kept.Channels[i].Entries) != 1 {
			t.Fatalf("package %s, channel %s: %v, kept %v", p.Name, ch.Name, err, kept.Channels[i].Entries)
		}
		for _, e := range ch.Entries {
			if e.Name != head.Name && !head.Succeeds(e.Name, versionOf(t, p, e.Name)) {
				t.Errorf("package %s, channel %s: %s cannot upgrade to %s any more", p.Name, ch.Name, e.Name, head.Name)
			}
		}
	}
	if err := (&bundles.Catalog{Packages: []*bundles.Package{kept.Apply(p)}}).Validate(); err != nil {
		t.Error(err)
	}
}

// checkRange selects the upper half of a package's versions.
func checkRange(t *testing.T, r *fbc.Reader, p *bundles.Package) {
	t.Helper()
	versions := make(map[string]semver.Version)
	for _, b := range p.Bundles {
		versions[b.Name] = versionOf(t, p, b.Name)
	}
	sorted := slices.SortedFunc(maps.Values(versions), semver.Version.Compare)
	middle := sorted[len(sorted)/2]
	some, err := selection.Open(t.Context(), r, &selection.Selection{Packages: []selection.Package{{Name: p.Name, Versions: ">=" + middle.String()}}})
	if err != nil {
		t.Fatal(err)
	}
	part, err := some.Package(t.Context(), p.Name)
	if err != nil {
		t.Fatal(err)
	}
	if err := part.Validate(); err != nil {
		t.Error(err)
	}
	for _, b := range part.Packages[0].Bundles {
		if versions[b.Name].LT(middle) {
			t.Errorf("package %s: %s is kept in spite of its version", p.Name, b.Name)
		}
	}
}

func versionOf(t *testing.T, p *bundles.Package, name string) semver.Version {
	t.Helper()
	for _, b := range p.Bundles {
		if b.Name != name {
			continue
		}
		for _, property := range b.Properties {
			if property.Type != bundles.TypePackage {
				continue
			}
			facts, err := bundles.ParseProperties([]bundles.Property{property})
			if err != nil {
				t.Fatal(err)
			}
			return semver.MustParse(facts.Packages[0].Version)
		}
	}
	t.Fatalf("package %s has no bundle %s", p.Name, name)
	return semver.Version{}
}

// TestRequireRealCatalog builds an index of the heads of a real catalog and their requirements.
func TestRequireRealCatalog(t *testing.T) {
	r := openReal(t)
	selected, err := selection.Open(t.Context(), r, &selection.Selection{Heads: true, OnlyDefaultChannels: true, Dependencies: true})
	if err != nil {
		t.Fatal(err)
	}
	x, err := index.CreateInMemory(t.Context(), selected, index.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got, least := x.Stats().Packages, len(r.Packages())-1; got < least {
		t.Errorf("%d packages of %d", got, least)
	}
	t.Logf("%d bundles, %d added, %d requirements not met", x.Stats().Bundles, len(selected.Additions()), len(selected.Unmet()))
	again, err := selection.Open(t.Context(), r, &selection.Selection{Heads: true, OnlyDefaultChannels: true, Dependencies: true})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(selected.Additions(), again.Additions()) || !slices.Equal(selected.Unmet(), again.Unmet()) {
		t.Error("the same selection is another one")
	}
}
