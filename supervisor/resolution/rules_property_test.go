package resolution_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/chandlery/chandlery/supervisor/resolution"
	"github.com/chandlery/chandlery/supervisor/resolution/constraint"
	"github.com/chandlery/chandlery/supervisor/resolution/content"
)

var (
	packNames = []string{"a", "b", "c", "d"}
	kindNames = []string{"X", "Y", "Z"}
)

// drawProblem draws a problem with many dependencies.
func drawProblem(t *rapid.T) resolution.Input {
	p := resolution.Input{Namespace: "home", Catalogs: map[resolution.CatalogKey]resolution.Catalog{}}
	keys := []resolution.CatalogKey{shop, market, bazaar}
	for _, key := range keys {
		var packs []pack
		for _, name := range packNames {
			if rapid.IntRange(0, 2).Draw(t, "there") > 0 {
				packs = append(packs, drawPack(t, name))
			}
		}
		p.Catalogs[key] = resolution.Catalog{Content: build(packs...), Priority: rapid.IntRange(0, 1).Draw(t, "priority")}
	}
	for _, name := range packNames {
		if rapid.IntRange(0, 2).Draw(t, "present") == 0 {
			version := rapid.IntRange(1, 3).Draw(t, "version")
			p.Operators = append(p.Operators, there(fmt.Sprintf("%s.v%d.0.0", name, version), drawProperties(t)...))
		}
	}
	for i := range rapid.IntRange(0, 5).Draw(t, "Subscriptions") {
		p.Subscriptions = append(p.Subscriptions, drawSubscription(t, fmt.Sprintf("sub%d", i), keys, p.Operators))
	}
	return p
}

func drawPack(t *rapid.T, name string) pack {
	bundle := func(i int) string { return fmt.Sprintf("%s.v%d.0.0", name, i) }
	var lanes []lane
	for _, channelName := range []string{"stable", "other"}[:rapid.IntRange(1, 2).Draw(t, "channels")] {
		l := lane{name: channelName}
		for i := range rapid.IntRange(1, 4).Draw(t, "versions") {
			words := []string{}
			if i > 0 && rapid.IntRange(0, 9).Draw(t, "replaces") > 0 {
				words = append(words, "replaces", bundle(i))
			}
			if i > 1 && rapid.IntRange(0, 3).Draw(t, "skips") == 0 {
				words = append(words, "skips", bundle(rapid.IntRange(1, i).Draw(t, "skipped")))
			}
			if rapid.IntRange(0, 4).Draw(t, "range") == 0 {
				words = append(words, "range", "<2.0.0")
			}
			l.entries = append(l.entries, at(bundle(i+1), words...))
		}
		lanes = append(lanes, l)
	}
	p := of(name, lanes...)
	for i := range 4 {
		p = p.with(bundle(i+1), drawProperties(t)...)
	}
	return p
}

func drawProperties(t *rapid.T) []constraint.Property {
	var out []constraint.Property
	kind := rapid.SampledFrom(kindNames)
	name := rapid.SampledFrom(packNames)
	versions := rapid.SampledFrom([]string{">=1.0.0", ">=2.0.0", "<2.0.0"})
	for range rapid.IntRange(0, 2).Draw(t, "properties") {
		switch rapid.IntRange(0, 9).Draw(t, "property") {
		case 0, 1, 2:
			out = append(out, bringing(kind.Draw(t, "brings")))
		case 3:
			out = append(out, needing(kind.Draw(t, "needs")))
		case 4:
			out = append(out, needingPackage(name.Draw(t, "package"), versions.Draw(t, "versions")))
		case 5:
			out = append(out, constrained(compound(rapid.SampledFrom([]string{"all", "any"}).Draw(t, "operator"),
				ofGVK(kind.Draw(t, "one")), ofPackage(name.Draw(t, "two"), versions.Draw(t, "two's versions")))))
		case 6:
			out = append(out, constrained(compound("all", ofGVK(kind.Draw(t, "one")), compound("not", ofPackage(name.Draw(t, "not"), ">=0.0.0")))))
		case 7:
			out = append(out, labelled("blue"))
		case 8:
			out = append(out, needingLabel("blue"))
		default:
			if rapid.IntRange(0, 4).Draw(t, "deprecated") == 0 {
				out = append(out, prop("olm.deprecated", `{}`))
			}
		}
	}
	return out
}

func drawSubscription(t *rapid.T, name string, keys []resolution.CatalogKey, operators []resolution.Operator) resolution.Subscription {
	s := sub(rapid.SampledFrom(packNames).Draw(t, "package"), called(name), from(rapid.SampledFrom(keys).Draw(t, "catalog")))
	s.Channel = rapid.SampledFrom([]string{"", "stable", "other"}).Draw(t, "channel")
	if rapid.IntRange(0, 4).Draw(t, "starting") == 0 {
		s.StartingCSV = fmt.Sprintf("%s.v%d.0.0", s.Package, rapid.IntRange(1, 4).Draw(t, "starting version"))
	}
	for i := range operators {
		if operators[i].Subject.Package == s.Package && rapid.IntRange(0, 3).Draw(t, "claims") > 0 {
			s.Installed = operators[i].Name
			s.OwnsInstalled = rapid.Bool().Draw(t, "holds")
		}
	}
	return s
}

// TestSolutionsKeepTheRules checks random solutions without the code of the resolver.
func TestSolutionsKeepTheRules(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawProblem(t)
		s := resolution.Resolve(t.Context(), p)
		if text := wrong(p, s); text != "" {
			t.Fatalf("%s\n%v", text, brief(s))
		}
	})
}

// texts returns the content of a solution as text.
func texts(s resolution.Solution) map[string]string {
	out := brief(s)
	for name, outcome := range s {
		out[name] += fmt.Sprintf(" held %v error %v", outcome.Constrained, outcome.Err)
	}
	return out
}

// TestSolutionsAreStable checks that the same problem always has the same solution, with the same text,
// although maps have no order.
func TestSolutionsAreStable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawProblem(t)
		first := texts(resolution.Resolve(t.Context(), p))
		for range 3 {
			if diff := cmp.Diff(first, texts(resolution.Resolve(t.Context(), p))); diff != "" {
				t.Fatal(diff)
			}
		}
	})
}

// TestUnrelatedSubscriptions checks that an unrelated Subscription does not affect others, and neither does an
// unreadable catalog that no Subscription names.
func TestUnrelatedSubscriptions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawProblem(t)
		alone := brief(resolution.Resolve(t.Context(), p))
		far := resolution.CatalogKey{Namespace: "olm", Name: "far"}
		p.Catalogs[far] = resolution.Catalog{Content: build(lone("stranger"), lone("broken", needing("Nothing")))}
		p.Catalogs[resolution.CatalogKey{Namespace: "olm", Name: "down"}] = resolution.Catalog{Err: errDown}
		p.Subscriptions = append([]resolution.Subscription{sub("stranger", from(far)), sub("broken", from(far))}, p.Subscriptions...)
		among := brief(resolution.Resolve(t.Context(), p))
		if among["my-stranger"] != "far/stable/stranger.v1.0.0" || among["my-broken"] != "failed" {
			t.Fatalf("strangers: %v", among)
		}
		delete(among, "my-stranger")
		delete(among, "my-broken")
		if diff := cmp.Diff(alone, among); diff != "" {
			t.Fatalf("(-alone +among strangers):\n%s", diff)
		}
	})
}

// TestSolutionsAreFollowed applies solutions repeatedly until nothing changes, and checks that this ends.
func TestSolutionsAreFollowed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawProblem(t)
		const most = 40
		for range most {
			s := resolution.Resolve(t.Context(), p)
			if text := wrong(p, s); text != "" {
				t.Fatalf("%s\n%v", text, brief(s))
			}
			if !apply(&p, s) {
				return
			}
		}
		t.Fatalf("after %d rounds there is still something to install", most)
	})
}

// apply adds the versions that a solution installs to the present operators. It reports whether there are any.
func apply(p *resolution.Input, s resolution.Solution) bool {
	present := map[string]resolution.Operator{}
	for _, o := range p.Operators {
		present[o.Name] = o
	}
	something := false
	for i := range p.Subscriptions {
		outcome := s[p.Subscriptions[i].Name]
		if outcome.Install == nil {
			continue
		}
		something = true
		delete(present, p.Subscriptions[i].Installed)
		for _, c := range append(outcome.Dependencies, outcome.Install) {
			present[c.Bundle] = asOperator(c.Entry)
		}
	}
	for i := range p.Subscriptions {
		if c := s[p.Subscriptions[i].Name].Install; c != nil {
			p.Subscriptions[i].Installed, p.Subscriptions[i].OwnsInstalled = c.Bundle, true
		}
	}
	p.Operators = nil
	for _, o := range present {
		p.Operators = append(p.Operators, o)
	}
	return something
}

func asOperator(e *content.Entry) resolution.Operator {
	return resolution.Operator{Name: e.Bundle.Name, Subject: e.Bundle.Subject, Requires: e.Bundle.Requires}
}
