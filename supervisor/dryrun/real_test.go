package dryrun

import (
	"os"
	"testing"

	"github.com/chandlery/chandlery/bundles/fbc"
	"github.com/chandlery/chandlery/supervisor/resolution"
	"github.com/chandlery/chandlery/supervisor/resolution/content"
	"github.com/chandlery/chandlery/test/realcatalogs"
)

// TestRunRealCatalog predicts the updates of every package of a real catalog, from the oldest version of
// its default channel. Every prediction must end, and must not end early.
func TestRunRealCatalog(t *testing.T) {
	decoded, err := fbc.Load(t.Context(), os.DirFS(realcatalogs.Dir(t, realcatalogs.Metadata)), fbc.Options{})
	if err != nil {
		t.Fatal(err)
	}
	all, err := content.FromCatalog(decoded)
	if err != nil {
		t.Fatal(err)
	}
	steps := 0
	for _, p := range all.Packages() {
		ch := p.Channel(p.DefaultChannel)
		if ch == nil || len(ch.Chain) == 0 {
			continue
		}
		oldest, head := ch.Chain[len(ch.Chain)-1].Bundle, ch.Chain[0].Bundle
		r := Request{Input: resolution.Input{
			Namespace:     "home",
			Catalogs:      map[resolution.CatalogKey]resolution.Catalog{shop: {Content: all}},
			Subscriptions: []resolution.Subscription{sub("my", p.Name, has(oldest.Name), channel(p.DefaultChannel))},
			Operators:     []resolution.Operator{{Name: oldest.Name, Subject: oldest.Subject, Requires: oldest.Requires}},
		}}
		f, err := Run(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		at := oldest.Name
		for _, s := range f.Steps {
			if s.Package != p.Name {
				continue
			}
			steps++
			if s.Replaces != at {
				t.Errorf("%s: %s is installed over %s, and %s is there", p.Name, s.Bundle, s.Replaces, at)
			}
			at = s.Bundle
		}
		if at != head.Name && len(f.HeldBack)+len(f.Refusals) == 0 {
			t.Errorf("%s ends at %s although the head is %s, and nothing is said of it", p.Name, at, head.Name)
		}
	}
	if steps == 0 {
		t.Error("nothing is updated")
	}
	t.Logf("%d packages, %d updates", len(all.Packages()), steps)
}
