package dryrun

import (
	"os"
	"slices"
	"testing"

	"github.com/blang/semver/v4"

	"github.com/chandlery/chandlery/bundles"
	"github.com/chandlery/chandlery/bundles/fbc"
	"github.com/chandlery/chandlery/bundles/selection"
	"github.com/chandlery/chandlery/supervisor/resolution"
	"github.com/chandlery/chandlery/supervisor/resolution/content"
	"github.com/chandlery/chandlery/test/realcatalogs"
)

// TestRunSelectedCatalog keeps the newer half of the versions of each package of a real catalog, as 'registry filter'
// does. Each kept version must still reach the head of each channel that it reaches in the whole catalog.
// It needs no other package, so a sample of the packages is enough.
func TestRunSelectedCatalog(t *testing.T) {
	dir, _ := realcatalogs.Sample(t, realcatalogs.Metadata)
	reader, err := fbc.Open(t.Context(), os.DirFS(dir), fbc.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = reader.Close() })
	paths := 0
	for _, name := range reader.Packages() {
		decoded, err := reader.Package(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		whole := pathsOf(t, decoded)
		selected, err := selection.Open(t.Context(), reader, &selection.Selection{
			Packages: []selection.Package{{Name: name, Versions: ">=" + middleVersion(whole.Package(name))}},
		})
		if err != nil {
			t.Fatal(err)
		}
		if decoded, err = selected.Package(t.Context(), name); err != nil {
			t.Fatal(err)
		}
		kept := pathsOf(t, decoded)
		for _, ch := range kept.Package(name).Channels {
			paths += comparePaths(t, whole, kept, ch)
		}
	}
	if paths == 0 {
		t.Error("no version is updated")
	}
	t.Logf("%d packages, %d paths", len(reader.Packages()), paths)
}

// pathsOf returns the content of a catalog without requirements, so that only channels decide about updates.
func pathsOf(t *testing.T, c *bundles.Catalog) *content.Catalog {
	t.Helper()
	all, err := content.FromCatalog(c)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range all.Packages() {
		for _, b := range p.Bundles {
			b.Requires = nil
		}
	}
	return all
}

func middleVersion(p *content.Package) string {
	var versions []semver.Version
	for _, b := range p.Bundles {
		versions = append(versions, b.Subject.Version)
	}
	slices.SortFunc(versions, semver.Version.Compare)
	return versions[len(versions)/2].String()
}

// comparePaths predicts the updates of each version in a channel of a selected part. It returns the number of versions that
// reach the head.
func comparePaths(t *testing.T, whole, kept *content.Catalog, ch *content.Channel) int {
	t.Helper()
	head, reaching := ch.Chain[0].Bundle.Name, 0
	for _, e := range ch.Entries {
		if e.Bundle.Name == head {
			continue
		}
		before, after := end(t, whole, ch, e), end(t, kept, ch, e)
		if before == head && after != head {
			t.Errorf("package %s, channel %s: %s is updated to %s, and in the whole catalog to the head %s", ch.Package.Name, ch.Name, e.Bundle.Name, after, head)
		}
		if after == head {
			reaching++
		}
	}
	return reaching
}

// end returns the last version of a Subscription to a channel with an installed version.
func end(t *testing.T, c *content.Catalog, ch *content.Channel, installed *content.Entry) string {
	t.Helper()
	at := installed.Bundle.Name
	res, err := Run(t.Context(), Request{Input: resolution.Input{
		Namespace:     "home",
		Catalogs:      map[resolution.CatalogKey]resolution.Catalog{shop: {Content: c}},
		Subscriptions: []resolution.Subscription{sub("my", ch.Package.Name, has(at), channel(ch.Name))},
		Operators:     []resolution.Operator{{Name: at, Subject: installed.Bundle.Subject}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range res.Steps {
		at = s.Bundle
	}
	return at
}
