package resolution_test

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/chandlery/chandlery/supervisor/resolution"
	"github.com/chandlery/chandlery/supervisor/resolution/constraint"
	"github.com/chandlery/chandlery/supervisor/resolution/content"
)

// drawSmall draws a problem of one catalog that is small enough to try all its outcomes.
func drawSmall(t *rapid.T, subscriptions int) resolution.Input {
	var packs []pack
	p := resolution.Input{Namespace: "home"}
	for _, name := range packNames {
		entries := []string{name + ".v1.0.0", name + ".v2.0.0", name + ".v3.0.0"}[:rapid.IntRange(1, 3).Draw(t, "versions")]
		pk := of(name, line("stable", entries...))
		for _, entry := range entries {
			pk = pk.with(entry, drawProperties(t)...)
		}
		packs = append(packs, pk)
		if rapid.IntRange(0, 3).Draw(t, "present") == 0 {
			p.Operators = append(p.Operators, there(name+".v1.0.0", drawBringing(t)...))
		}
	}
	p.Catalogs = map[resolution.CatalogKey]resolution.Catalog{shop: {Content: build(packs...)}}
	for _, name := range rapid.Permutation(packNames).Draw(t, "order")[:subscriptions] {
		s := sub(name)
		subscribed := rapid.IntRange(0, 3).Draw(t, "subscribed") > 0
		if subscribed && slices.ContainsFunc(p.Operators, func(o resolution.Operator) bool { return o.Name == name+".v1.0.0" }) {
			s.Installed, s.OwnsInstalled = name+".v1.0.0", true
		}
		p.Subscriptions = append(p.Subscriptions, s)
	}
	return p
}

// drawBringing draws the properties of a present operator. It has no dependencies: other tests cover these.
func drawBringing(t *rapid.T) []constraint.Property {
	return slices.DeleteFunc(drawProperties(t), func(p constraint.Property) bool { return p.Type != "olm.gvk" && p.Type != "olm.label" })
}

// pick is the outcome for a package: an entry is installed, or the present version remains.
type pick struct {
	pkg   string
	entry *content.Entry
}

// options returns the possible outcomes for a package. If a Subscription must be met, these are only its
// candidates.
func options(p resolution.Input, pkg string, met bool) []pick {
	i := slices.IndexFunc(p.Operators, func(o resolution.Operator) bool { return o.Subject.Package == pkg })
	j := slices.IndexFunc(p.Subscriptions, func(s resolution.Subscription) bool { return s.Package == pkg })
	held := j >= 0 && p.Subscriptions[j].Installed != ""
	var out []pick
	for _, e := range p.Catalogs[shop].Content.Package(pkg).Channel("stable").Chain {
		if i < 0 || held && e.Replaces == p.Subscriptions[j].Installed {
			out = append(out, pick{pkg: pkg, entry: e})
		}
	}
	if held || !met {
		out = append(out, pick{pkg: pkg})
	}
	return out
}

// possible reports whether some outcome meets the given Subscriptions, by trying all outcomes. The version of
// one of them may be given.
func possible(p resolution.Input, met map[string]bool, fixed *content.Entry) bool {
	var try func(at int, picks []pick) bool
	try = func(at int, picks []pick) bool {
		if at == len(packNames) {
			return allowed(p, picks)
		}
		for _, o := range options(p, packNames[at], met[packNames[at]]) {
			if fixed != nil && fixed.Channel.Package.Name == o.pkg && fixed != o.entry {
				continue
			}
			if try(at+1, append(picks, o)) {
				return true
			}
		}
		return false
	}
	return try(0, nil)
}

// allowed reports whether an outcome satisfies the rules.
func allowed(p resolution.Input, picks []pick) bool {
	s := resolution.Solution{}
	trial := resolution.Input{Operators: p.Operators, Catalogs: p.Catalogs}
	for _, o := range picks {
		subscription := sub(o.pkg)
		if i := slices.IndexFunc(p.Subscriptions, func(s resolution.Subscription) bool { return s.Package == o.pkg }); i >= 0 {
			subscription = p.Subscriptions[i]
		}
		trial.Subscriptions = append(trial.Subscriptions, subscription)
		var outcome resolution.Outcome
		if o.entry != nil {
			outcome.Install = &resolution.Choice{Catalog: shop, Package: o.pkg, Channel: "stable", Bundle: o.entry.Bundle.Name, Entry: o.entry}
		}
		s[subscription.Name] = outcome
	}
	return wrong(trial, s) == ""
}

// TestFailuresAreTrue checks that exactly those Subscriptions fail that cannot be met together with the ones
// before them.
func TestFailuresAreTrue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawSmall(t, rapid.IntRange(1, 4).Draw(t, "Subscriptions"))
		met := map[string]bool{}
		for _, s := range p.Subscriptions {
			met[s.Package] = s.Installed != ""
		}
		got := resolution.Resolve(t.Context(), p)
		for _, s := range p.Subscriptions {
			met[s.Package] = true
			met[s.Package] = possible(p, met, nil)
			if failed := got[s.Name].Err != nil; failed == met[s.Package] {
				t.Fatalf("%s possible: %v, error %v\n%v", s.Name, met[s.Package], got[s.Name].Err, brief(got))
			}
		}
	})
}

// TestTheBestVersionIsFound checks that a Subscription gets the first of its possible candidates.
func TestTheBestVersionIsFound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawSmall(t, 1)
		s := p.Subscriptions[0]
		got := resolution.Resolve(t.Context(), p)[s.Name]
		want := "nothing"
		for _, o := range options(p, s.Package, true) {
			if o.entry != nil && possible(p, map[string]bool{s.Package: true}, o.entry) {
				want = o.entry.Bundle.Name
				break
			}
		}
		found := "nothing"
		if got.Install != nil {
			found = got.Install.Bundle
		}
		if found != want {
			t.Fatal(fmt.Sprintf("found %s, possible is %s; error %v, held %v", found, want, got.Err, got.Constrained))
		}
		if (got.Constrained != nil) != (want != "nothing" && got.Install.Entry.Position > 0 && s.Installed == "" || want == "nothing" && s.Installed != "" && len(options(p, s.Package, true)) > 1) {
			t.Fatalf("found %s, held %v", found, got.Constrained)
		}
	})
}
