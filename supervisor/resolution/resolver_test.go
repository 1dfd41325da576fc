package resolution

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/blang/semver/v4"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/chandlery/chandlery/bundles"
	"github.com/chandlery/chandlery/supervisor/resolution/constraint"
	"github.com/chandlery/chandlery/supervisor/resolution/content"
)

var (
	shop    = CatalogKey{Namespace: "olm", Name: "shop"}
	market  = CatalogKey{Namespace: "home", Name: "market"}
	silent  = CatalogKey{Namespace: "olm", Name: "silent"}
	errDown = errors.New("no registry client established")
)

func property(kind, value string) bundles.Property {
	return bundles.Property{Type: kind, Value: json.RawMessage(value)}
}

func bundle(pkg, version string, extra ...bundles.Property) *bundles.Bundle {
	return &bundles.Bundle{
		Name: pkg + ".v" + version, Package: pkg,
		Properties: append([]bundles.Property{property("olm.package", fmt.Sprintf(`{"packageName":%q,"version":%q}`, pkg, version))}, extra...),
	}
}

// lamp returns a package with a chain of four versions in stable, another head in beta, and a channel for each
// possible error.
func lamp() *bundles.Package {
	return &bundles.Package{
		Name: "lamp", DefaultChannel: "stable",
		Channels: []*bundles.Channel{
			{Name: "beta", Package: "lamp", Entries: []bundles.Entry{{Name: "lamp.v2.0.0", SkipRange: ">=1.1.0 <2.0.0"}}},
			{Name: "broken", Package: "lamp", Entries: []bundles.Entry{{Name: "lamp.v1.0.0"}, {Name: "lamp.v1.1.0"}}},
			{Name: "skips", Package: "lamp", Entries: []bundles.Entry{
				{Name: "lamp.v1.3.0", Replaces: "lamp.v1.2.0", Skips: []string{"lamp.v1.1.0"}}, {Name: "lamp.v1.2.0", Replaces: "lamp.v1.0.0"}, {Name: "lamp.v1.0.0"},
			}},
			{Name: "stable", Package: "lamp", Entries: []bundles.Entry{
				{Name: "lamp.v1.0.0"},
				{Name: "lamp.v1.1.0", Replaces: "lamp.v1.0.0"},
				{Name: "lamp.v1.2.0", Replaces: "lamp.v1.1.0"},
				{Name: "lamp.v1.3.0", Replaces: "lamp.v1.2.0"},
			}},
		},
		Bundles: []*bundles.Bundle{bundle("lamp", "1.0.0"), bundle("lamp", "1.1.0"), bundle("lamp", "1.2.0"), bundle("lamp", "1.3.0"), bundle("lamp", "2.0.0")},
	}
}

// single returns a package of one version.
func single(pkg string, extra ...bundles.Property) *bundles.Package {
	return &bundles.Package{
		Name: pkg, DefaultChannel: "stable",
		Channels: []*bundles.Channel{{Name: "stable", Package: pkg, Entries: []bundles.Entry{{Name: pkg + ".v1.0.0"}}}},
		Bundles:  []*bundles.Bundle{bundle(pkg, "1.0.0", extra...)},
	}
}

// offering returns the content of a catalog.
func offering(packages ...*bundles.Package) *content.Catalog {
	catalog, err := content.FromCatalog(&bundles.Catalog{Packages: packages})
	if err != nil {
		panic(err)
	}
	return catalog
}

func problem(subscriptions ...Subscription) Input {
	return Input{
		Namespace:     "home",
		Subscriptions: subscriptions,
		Catalogs: map[CatalogKey]Catalog{
			shop: {Content: offering(
				single("api"),
				single("crate", property("olm.gvk.required", `{"group":"shop.example","version":"v1","kind":"Lamp"}`)),
				single("crude", property("olm.constraint", `{"failureMessage":"no","all":{"constraints":[]}}`)),
				lamp(),
				single("odd", property("olm.gvk.required", `7`)),
				single("own", property("olm.gvk.required", `{"group":"o.example","version":"v1","kind":"Own"}`), property("olm.gvk", `{"group":"o.example","version":"v1","kind":"Own"}`)),
				single("tray", property("olm.package.required", `{"packageName":"lamp","versionRange":">=1.1.0"}`)),
			)},
			market: {Content: offering(single("lamp"))},
			silent: {Err: errDown},
		},
	}
}

func want(pkg string, changes ...func(*Subscription)) Subscription {
	sub := Subscription{Name: "my-" + pkg, Catalog: shop, Package: pkg}
	for _, change := range changes {
		change(&sub)
	}
	return sub
}

func channel(name string) func(*Subscription) { return func(s *Subscription) { s.Channel = name } }
func start(name string) func(*Subscription)   { return func(s *Subscription) { s.StartingCSV = name } }

func has(name string) func(*Subscription)     { return func(s *Subscription) { s.Installed = name } }
func named(name string) func(*Subscription)   { return func(s *Subscription) { s.Name = name } }
func from(key CatalogKey) func(*Subscription) { return func(s *Subscription) { s.Catalog = key } }

func operator(name, version string, properties ...bundles.Property) Operator {
	var list []constraint.Property
	for _, p := range properties {
		list = append(list, constraint.Property{Type: p.Type, Value: string(p.Value)})
	}
	subject, requires, err := constraint.Parse(list)
	if err != nil {
		panic(err)
	}
	if version != "" {
		subject.Version = semver.MustParse(version)
	}
	return Operator{Name: name, Subject: subject, Requires: requires}
}

func TestResolveFindsTheNextVersion(t *testing.T) {
	gvk := property("olm.gvk", `{"group":"shop.example","version":"v1","kind":"Lamp"}`)
	for _, tt := range []struct {
		reason    string
		sub       Subscription
		operators []Operator
		bundle    string // empty for nothing newer
		channel   string
		replaces  string
	}{
		{reason: "the head of the default channel", sub: want("lamp"), bundle: "lamp.v1.3.0", channel: "stable", replaces: "lamp.v1.2.0"},
		{reason: "the head of the channel that is named", sub: want("lamp", channel("beta")), bundle: "lamp.v2.0.0", channel: "beta"},
		{reason: "another catalog", sub: want("lamp", from(market)), bundle: "lamp.v1.0.0", channel: "stable"},
		{reason: "the version to start with", sub: want("lamp", start("lamp.v1.1.0")), bundle: "lamp.v1.1.0", channel: "stable", replaces: "lamp.v1.0.0"},
		{reason: "the version to start with counts only once", sub: want("lamp", start("lamp.v1.1.0"), has("lamp.v1.1.0")), bundle: "lamp.v1.2.0", channel: "stable", replaces: "lamp.v1.1.0"},
		{reason: "replaces", sub: want("lamp", has("lamp.v1.0.0")), bundle: "lamp.v1.1.0", channel: "stable", replaces: "lamp.v1.0.0"},
		{reason: "skips jumps over what is replaced", sub: want("lamp", channel("skips"), has("lamp.v1.1.0")), bundle: "lamp.v1.3.0", channel: "skips", replaces: "lamp.v1.1.0"},
		{reason: "replaces where nothing is skipped", sub: want("lamp", channel("skips"), has("lamp.v1.0.0")), bundle: "lamp.v1.2.0", channel: "skips", replaces: "lamp.v1.0.0"},
		{reason: "a range that covers the version", sub: want("lamp", channel("beta"), has("lamp.v1.2.0")), operators: []Operator{operator("lamp.v1.2.0", "1.2.0")}, bundle: "lamp.v2.0.0", channel: "beta", replaces: "lamp.v1.2.0"},
		{reason: "a range that does not", sub: want("lamp", channel("beta"), has("lamp.v1.0.0")), operators: []Operator{operator("lamp.v1.0.0", "1.0.0")}},
		{reason: "a range says nothing of an unknown version", sub: want("lamp", channel("beta"), has("lamp.v1.2.0")), operators: []Operator{operator("lamp.v1.2.0", "")}},
		{reason: "a range says nothing of an operator that is not there", sub: want("lamp", channel("beta"), has("lamp.v1.2.0"))},
		{reason: "the head is installed", sub: want("lamp", has("lamp.v1.3.0"))},
		{reason: "what is installed is in no channel", sub: want("lamp", has("lamp.v0.0.1"))},
		{reason: "an API that is there", sub: want("crate"), operators: []Operator{operator("lamp.v1.0.0", "1.0.0", gvk)}, bundle: "crate.v1.0.0", channel: "stable"},
		{reason: "an API that the bundle brings itself", sub: want("own"), bundle: "own.v1.0.0", channel: "stable"},
		{reason: "a package that is there", sub: want("tray"), operators: []Operator{operator("lamp.v1.1.0", "1.1.0", property("olm.package", `{"packageName":"lamp","version":"1.1.0"}`))}, bundle: "tray.v1.0.0", channel: "stable"},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			p := problem(tt.sub)
			p.Operators = tt.operators
			got := Resolve(t.Context(), p)[tt.sub.Name]
			if got.Err != nil {
				t.Fatal(got.Err)
			}
			if tt.bundle == "" {
				if got.Install != nil {
					t.Fatalf("installs %+v", got.Install)
				}
				return
			}
			if got.Install == nil {
				t.Fatal("installs nothing")
			}
			wanted := &Choice{Catalog: tt.sub.Catalog, Package: tt.sub.Package, Channel: tt.channel, Bundle: tt.bundle, Replaces: tt.replaces}
			if diff := cmp.Diff(wanted, got.Install, cmpopts.IgnoreFields(Choice{}, "Entry", "Because")); diff != "" {
				t.Errorf("choice (-want +got):\n%s", diff)
			}
			if got.Install.Entry.Bundle.Name != tt.bundle || got.Install.Because == "" {
				t.Errorf("entry %s, because %q", got.Install.Entry.Bundle.Name, got.Install.Because)
			}
		})
	}
}

// TestResolveReasons checks the wording that tools match on.
// TestEmptyCatalog checks that the reasons contain OLM's sentence about a catalog without packages.
func TestEmptyCatalog(t *testing.T) {
	t.Parallel()
	sub := want("lamp")
	err := packageNotFound(&sub, nil)
	for _, text := range []string{
		"constraints not satisfiable: no operators found from catalog shop in namespace olm referenced by subscription my-lamp, ",
		"no operators found in package lamp in the catalog referenced by subscription my-lamp, subscription my-lamp exists", "the catalog has 0 packages",
	} {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("%v, want %q", err, text)
		}
	}
}

func TestResolveReasons(t *testing.T) {
	for _, tt := range []struct {
		reason    string
		sub       Subscription
		operators []Operator
		want      []string
	}{
		{
			reason: "catalog", sub: want("lamp", from(CatalogKey{Namespace: "far", Name: "gone"})),
			want: []string{"no operators found from catalog gone in namespace far referenced by subscription my-lamp", "subscription my-lamp exists", "set spec.source and spec.sourceNamespace to one of home/market, olm/shop, olm/silent"},
		},
		{reason: "package in another case", sub: want("LAMP"), want: []string{"check spec.name, it has for instance lamp"}},
		{reason: "package with a letter too many in the middle", sub: want("laamp"), want: []string{"check spec.name, it has for instance lamp"}},
		{reason: "package", sub: want("lam"), want: []string{"no operators found in package lam in the catalog referenced by subscription my-lam", "check spec.name, it has for instance lamp"}},
		{reason: "package unlike any", sub: want("zebra"), want: []string{"no operators found in package zebra in the catalog", "the catalog has 7 packages; check spec.name"}},
		{reason: "channel", sub: want("lamp", channel("alpha")), want: []string{"no operators found in channel alpha of package lamp in the catalog referenced by subscription my-lamp", "set spec.channel to one of beta, broken, skips, stable"}},
		{reason: "startingCSV", sub: want("lamp", start("lamp.v7")), want: []string{"no operators found with name lamp.v7 in channel stable of package lamp in the catalog referenced by subscription my-lamp", "set spec.startingCSV to an entry of the channel or remove it"}},
		{reason: "API", sub: want("crate"), want: []string{"bundle crate.v1.0.0 requires an operator providing an API with group: shop.example, version: v1, kind: Lamp", "create a CatalogSource", "catalogsource olm/silent cannot be read and may have it"}},
		{reason: "channel with two heads", sub: want("lamp", channel("broken")), want: []string{`2 replacement chains were found in channel "broken" of package "lamp"`, "ask the publisher of the catalog to fix it"}},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			p := problem(tt.sub)
			p.Operators = tt.operators
			got := Resolve(t.Context(), p)[tt.sub.Name]
			if _, ok := errors.AsType[*UnsatisfiableError](got.Err); !ok {
				t.Fatalf("error %v (%T), want an *UnsatisfiableError", got.Err, got.Err)
			}
			if got.Install != nil {
				t.Errorf("installs %s in spite of the error", got.Install.Bundle)
			}
			for _, text := range append(tt.want, "constraints not satisfiable: ") {
				if !strings.Contains(got.Err.Error(), text) {
					t.Errorf("error %q does not contain %q", got.Err, text)
				}
			}
		})
	}
}

// TestResolveCatalogTrouble uses errors of a catalog, not of a request.
func TestResolveCatalogTrouble(t *testing.T) {
	for _, tt := range []struct {
		reason string
		sub    Subscription
		want   []string
		is     error
	}{
		{reason: "no content", sub: want("lamp", from(silent)), want: []string{"error using catalogsource olm/silent: no registry client established"}, is: errDown},
		{reason: "a constraint that cannot be read", sub: want("crude"), want: []string{"olm/shop", `bundle "crude.v1.0.0"`, "olm.constraint", "ask the publisher"}},
		{reason: "a property that cannot be read", sub: want("odd"), want: []string{"olm/shop", `package "odd", bundle "odd.v1.0.0"`}},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			got := Resolve(t.Context(), problem(tt.sub))[tt.sub.Name]
			var trouble *CatalogError
			if !errors.As(got.Err, &trouble) || (tt.is != nil && !errors.Is(got.Err, tt.is)) {
				t.Fatalf("error %v (%T)", got.Err, got.Err)
			}
			if got.Install != nil {
				t.Errorf("installs %s in spite of the error", got.Install.Bundle)
			}
			for _, text := range tt.want {
				if !strings.Contains(got.Err.Error(), text) {
					t.Errorf("error %q does not contain %q", got.Err, text)
				}
			}
		})
	}
	p := problem(want("lamp"))
	p.Catalogs = nil
	if err := Resolve(t.Context(), p)["my-lamp"].Err; err == nil || !strings.Contains(err.Error(), "neither this namespace nor the global namespace has a CatalogSource; create one") {
		t.Errorf("without catalogs: %v", err)
	}
}

func TestResolveCompetingSubscriptions(t *testing.T) {
	senior := want("lamp", named("senior"), has("lamp.v1.0.0"))
	for _, tt := range []struct {
		reason  string
		first   Subscription
		sub     Subscription
		refused bool
	}{
		{reason: "the same request", first: senior, sub: want("lamp", named("junior"), has("lamp.v1.0.0"))},
		{reason: "another channel", first: senior, sub: want("lamp", named("junior"), channel("beta")), refused: true},
		{reason: "another catalog", first: senior, sub: want("lamp", named("junior"), from(market)), refused: true},
		{reason: "another start", first: senior, sub: want("lamp", named("junior"), start("lamp.v1.0.0")), refused: true},
		{reason: "another package", first: senior, sub: want("api", named("junior"))},
		{reason: "a catalog that is away goes on counting", first: want("lamp", named("senior"), from(silent)), sub: want("lamp", named("junior")), refused: true},
		{reason: "a request for a channel that is not there claims nothing", first: want("lamp", named("senior"), channel("gone")), sub: want("lamp", named("junior"))},
		{reason: "a request for a catalog that is not there claims nothing", first: want("lamp", named("senior"), from(CatalogKey{Name: "gone"})), sub: want("lamp", named("junior"))},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			alone := Resolve(t.Context(), problem(tt.first))["senior"]
			got := Resolve(t.Context(), problem(tt.first, tt.sub))
			if diff := cmp.Diff(text(alone), text(got["senior"])); diff != "" {
				t.Errorf("the senior one suffers (-alone +beside):\n%s", diff)
			}
			err := got["junior"].Err
			if !tt.refused {
				if err != nil {
					t.Error(err)
				}
				return
			}
			for _, want := range []string{"there can be only one operator from package lamp", "subscription senior exists", "subscription junior exists", "delete subscription junior, or give it the same"} {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("error %v does not contain %q", err, want)
				}
			}
		})
	}
}

// TestResolveWalksTheChainOneHopAtATime installs each chosen version until there is nothing newer.
func TestResolveWalksTheChainOneHopAtATime(t *testing.T) {
	sub := want("lamp", start("lamp.v1.0.0"))
	var walked []string
	for range 10 {
		p := problem(sub)
		got := Resolve(t.Context(), p)[sub.Name]
		if got.Err != nil {
			t.Fatal(got.Err)
		}
		if got.Install == nil {
			break
		}
		walked = append(walked, got.Install.Bundle)
		sub.Installed = got.Install.Bundle
	}
	if diff := cmp.Diff([]string{"lamp.v1.0.0", "lamp.v1.1.0", "lamp.v1.2.0", "lamp.v1.3.0"}, walked); diff != "" {
		t.Errorf("versions on the way (-want +got):\n%s", diff)
	}
}

// text returns outcomes in a comparable form, with errors as text.
func text(o Outcome) string {
	switch {
	case o.Err != nil:
		return o.Err.Error()
	case o.Install != nil:
		return o.Install.Catalog.String() + "/" + o.Install.Channel + "/" + o.Install.Bundle + " for " + o.Install.Replaces
	default:
		return "nothing"
	}
}

// drawSubscriptions draws valid and invalid Subscriptions with different names.
func drawSubscriptions(t *rapid.T) []Subscription {
	n := rapid.IntRange(1, 6).Draw(t, "subscriptions")
	subs := make([]Subscription, 0, n)
	for i := range n {
		subs = append(subs, Subscription{
			Name:        fmt.Sprintf("sub-%d", i),
			Catalog:     rapid.SampledFrom([]CatalogKey{shop, market, silent, {Namespace: "far", Name: "gone"}}).Draw(t, "catalog"),
			Package:     rapid.SampledFrom([]string{"api", "crate", "crude", "lamp", "odd", "own", "tray", "gone", ""}).Draw(t, "package"),
			Channel:     rapid.SampledFrom([]string{"", "stable", "beta", "broken", "skips", "gone"}).Draw(t, "channel"),
			StartingCSV: rapid.SampledFrom([]string{"", "", "lamp.v1.0.0", "gone"}).Draw(t, "startingCSV"),
			Installed:   rapid.SampledFrom([]string{"", "", "lamp.v1.0.0", "lamp.v1.3.0", "gone"}).Draw(t, "installed"),
		})
	}
	return subs
}

func TestResolveIsDeterministic(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		subs := drawSubscriptions(t)
		first, second := Resolve(t.Context(), problem(subs...)), Resolve(t.Context(), problem(subs...))
		if len(first) == 0 {
			t.Fatal("no solution")
		}
		for name := range first {
			if text(first[name]) != text(second[name]) {
				t.Fatalf("%s: %s, then %s", name, text(first[name]), text(second[name]))
			}
		}
		if len(first) != len(subs) {
			t.Fatalf("%d Subscriptions have %d outcomes", len(subs), len(first))
		}
	})
}

// TestResolveIsolates checks that a Subscription, however invalid, does not affect those of other packages, and
// that an invalid one affects no other.
func TestResolveIsolates(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		subs := drawSubscriptions(t)
		at := rapid.IntRange(0, len(subs)-1).Draw(t, "removed")
		removed := subs[at]
		without := Resolve(t.Context(), problem(slices.Delete(slices.Clone(subs), at, at+1)...))
		with := Resolve(t.Context(), problem(subs...))
		alone := Resolve(t.Context(), problem(removed))[removed.Name]
		nowhere := alone.Err != nil && strings.Contains(alone.Err.Error(), "no operators found")
		for _, sub := range subs {
			if sub.Name == removed.Name || (sub.Package == removed.Package && !nowhere) {
				continue
			}
			if text(with[sub.Name]) != text(without[sub.Name]) {
				t.Fatalf("%s beside %s: %s; without: %s", sub.Name, removed.Name, text(with[sub.Name]), text(without[sub.Name]))
			}
		}
	})
}

// TestResolveSeniority checks which of two Subscriptions with different requests keeps a package, and which
// differences do not matter.
func TestResolveSeniority(t *testing.T) {
	holds := func(s *Subscription) { s.OwnsInstalled = true }
	for _, tt := range []struct {
		reason  string
		older   Subscription
		holder  Subscription
		refused bool
	}{
		{
			reason: "what is installed stays with the one that it came from", refused: true,
			older:  want("lamp", named("older"), channel("beta"), has("lamp.v1.0.0")),
			holder: want("lamp", named("holder"), has("lamp.v1.0.0"), holds),
		},
		{
			reason: "even when that one asks for what is gone", refused: true,
			older:  want("lamp", named("older"), has("lamp.v1.0.0")),
			holder: want("lamp", named("holder"), channel("gone"), has("lamp.v1.0.0"), holds),
		},
		{
			reason: "the default channel by its name is the same request, as is another start once something is installed",
			older:  want("lamp", named("older"), channel(""), has("lamp.v1.0.0"), start("lamp.v1.0.0")),
			holder: want("lamp", named("holder"), channel("stable"), has("lamp.v1.0.0"), holds),
		},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			alone := Resolve(t.Context(), problem(tt.holder))["holder"]
			got := Resolve(t.Context(), problem(tt.older, tt.holder))
			if diff := cmp.Diff(text(alone), text(got["holder"])); diff != "" {
				t.Errorf("the holder suffers (-alone +beside):\n%s", diff)
			}
			err, ok := errors.AsType[*UnsatisfiableError](got["older"].Err)
			if refused := ok && err.KeptBy == "holder"; refused != tt.refused {
				t.Errorf("the older one is refused: %v (%v), want %v", refused, got["older"].Err, tt.refused)
			}
		})
	}
}

// TestResolveAgain checks which version is installed after the previous one was removed.
func TestResolveAgain(t *testing.T) {
	before := func(name string) func(*Subscription) { return func(s *Subscription) { s.LastInstalled = name } }
	head := Resolve(t.Context(), problem(want("lamp", named("my"))))["my"].Install.Bundle
	for _, tt := range []struct {
		reason string
		sub    Subscription
		want   string
	}{
		{reason: "the one that was there", sub: want("lamp", named("my"), before(head), start("lamp.v1.0.0")), want: head},
		{reason: "the head when the channel no longer has it", sub: want("lamp", named("my"), before("lamp.v0.0.1"), start("lamp.v1.0.0")), want: head},
		{reason: "the first one when there never was any", sub: want("lamp", named("my"), start("lamp.v1.0.0")), want: "lamp.v1.0.0"},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			got := Resolve(t.Context(), problem(tt.sub))["my"]
			if got.Install == nil || got.Install.Bundle != tt.want {
				t.Errorf("got %s, want %s", text(got), tt.want)
			}
		})
	}
}
