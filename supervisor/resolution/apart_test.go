package resolution

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/chandlery/chandlery/bundles"
	"github.com/chandlery/chandlery/supervisor/resolution/sat"
)

// resolveAtOnce is the reference for Resolve. It solves everything in one problem, with all alternatives from
// the beginning.
func resolveAtOnce(ctx context.Context, in Input) Solution {
	res, known := newResolver(&in)
	if len(res.requests) == 0 {
		return known
	}
	s := groupSolver{resolver: res, group: res.requests, steps: maxSteps}
	p, taken, err := s.try(ctx, wide, sat.NewAllowance(maxSteps))
	if p == nil {
		panic(err)
	}
	var a *groupResult
	if err != nil {
		a = s.solveParts(ctx, p)
	} else {
		a = &groupResult{group: s.group, taken: taken, constrained: s.constrained(ctx, p, taken, nil)}
	}
	return res.complete(ctx, known, []*groupResult{a}, maxSteps)
}

// draw draws a small problem with many dependencies.
func draw(t *rapid.T) Input {
	names := []string{"a", "b", "c", "d", "e"}
	apis := []string{"X", "Y", "Z"}
	p := Input{Namespace: "home", Catalogs: map[CatalogKey]Catalog{}}
	for _, key := range []CatalogKey{shop, market} {
		var packages []*bundles.Package
		for _, name := range names {
			if rapid.IntRange(0, 4).Draw(t, "left out") == 0 {
				continue
			}
			var versions [][]bundles.Property
			for range rapid.IntRange(1, 3).Draw(t, "versions") {
				versions = append(versions, drawProperties(t, name, names, apis))
			}
			packages = append(packages, chain(name, versions...))
		}
		p.Catalogs[key] = Catalog{Content: offering(packages...), Priority: rapid.IntRange(0, 1).Draw(t, "priority")}
	}
	for _, name := range names {
		present := rapid.IntRange(0, 3).Draw(t, "present") == 0
		if present {
			list := append(drawProperties(t, name, names, apis), isPackage(name))
			p.Operators = append(p.Operators, operator(name+".v1.0.0", "1.0.0", list...))
		}
		if rapid.Bool().Draw(t, "subscribed") {
			sub := want(name, from(rapid.SampledFrom([]CatalogKey{shop, market}).Draw(t, "catalog")))
			if present {
				sub.Installed = name + ".v1.0.0"
			}
			p.Subscriptions = append(p.Subscriptions, sub)
		}
	}
	return p
}

func drawProperties(t *rapid.T, name string, names, apis []string) []bundles.Property {
	var list []bundles.Property
	if rapid.IntRange(0, 2).Draw(t, "provides") == 0 {
		list = append(list, provides(rapid.SampledFrom(apis).Draw(t, "API")))
	}
	if rapid.IntRange(0, 3).Draw(t, "needs an API") == 0 {
		list = append(list, needsAPI(rapid.SampledFrom(apis).Draw(t, "API needed")))
	}
	if other := rapid.SampledFrom(names).Draw(t, "package needed"); other != name && rapid.IntRange(0, 3).Draw(t, "needs a package") == 0 {
		list = append(list, needsPackage(other, rapid.SampledFrom([]string{">=1.0.0", ">=2.0.0", "<2.0.0"}).Draw(t, "range")))
	}
	return list
}

// waits reports whether an update waits because of a dependency of a present operator. Another Subscription may
// be about to provide it. The update then follows one resolution later.
func waits(s Solution) bool {
	for _, o := range s {
		held, _ := errors.AsType[*UnsatisfiableError](o.Constrained)
		if held != nil && slices.ContainsFunc(held.Reasons, func(why string) bool {
			return strings.HasPrefix(why, "clusterserviceversion") && strings.Contains(why, " requires ")
		}) {
			return true
		}
	}
	return false
}

// TestResolveApart checks that solving Subscriptions separately has the same result as solving all at once.
func TestResolveApart(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := draw(t)
		apart, atOnce := Resolve(t.Context(), p), resolveAtOnce(t.Context(), p)
		if diff := cmp.Diff(brief(atOnce), brief(apart)); diff != "" && !waits(apart) {
			t.Fatalf("solution (-at once +apart):\n%s\n%s", diff, show(p, apart))
		}
	})
}

func show(p Input, s Solution) string {
	var text strings.Builder
	for i := range p.Subscriptions {
		sub := &p.Subscriptions[i]
		fmt.Fprintf(&text, "subscription %s of %s, installed %q: %v; held: %v\n", sub.Name, sub.Catalog, sub.Installed, s[sub.Name].Err, s[sub.Name].Constrained)
	}
	for i := range p.Operators {
		o := &p.Operators[i]
		fmt.Fprintf(&text, "present %s: %v requires %v\n", o.Name, o.Subject.GVKs, o.Requires)
	}
	for _, key := range p.rank() {
		for _, pkg := range p.Catalogs[key].Content.Packages() {
			for _, e := range slices.Backward(pkg.Channels[0].Entries) {
				fmt.Fprintf(&text, "%s (%d): %s: %v requires %v\n", key, p.Catalogs[key].Priority, e.Bundle.Name, e.Bundle.Subject.GVKs, e.Bundle.Requires)
			}
		}
	}
	return text.String()
}
