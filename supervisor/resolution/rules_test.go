package resolution_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chandlery/chandlery/supervisor/resolution"
	"github.com/chandlery/chandlery/supervisor/resolution/constraint"
	"github.com/chandlery/chandlery/supervisor/resolution/content"
)

// ruleCase is a problem with its expected solution.
type ruleCase struct {
	// rule is the rule of OLM's behaviour that the case tests: the section of its description, and its text.
	rule     string
	shop     []pack
	market   []pack
	bazaar   []pack
	priority map[resolution.CatalogKey]int
	down     []resolution.CatalogKey
	present  []resolution.Operator
	subs     []resolution.Subscription
	want     map[string]string
	// says holds a part of the error of a Subscription, and held a part of the reason why a version is held back.
	says map[string][]string
	held map[string][]string
}

var errDown = errors.New("no registry client established")

func (c *ruleCase) problem() resolution.Input {
	p := resolution.Input{Namespace: "home", Subscriptions: c.subs, Operators: c.present, Catalogs: map[resolution.CatalogKey]resolution.Catalog{}}
	for key, packs := range map[resolution.CatalogKey][]pack{shop: c.shop, market: c.market, bazaar: c.bazaar} {
		if packs != nil {
			p.Catalogs[key] = resolution.Catalog{Content: build(packs...), Priority: c.priority[key]}
		}
	}
	for _, key := range c.down {
		p.Catalogs[key] = resolution.Catalog{Err: errDown}
	}
	return p
}

func (c *ruleCase) run(t *testing.T) {
	p := c.problem()
	got := resolution.Resolve(t.Context(), p)
	if diff := cmp.Diff(c.want, brief(got)); diff != "" {
		t.Errorf("solution (-want +got):\n%s", diff)
	}
	if text := wrong(p, got); text != "" {
		t.Error(text)
	}
	for name, outcome := range got {
		if outcome.Err != nil && c.says[name] == nil {
			t.Errorf("subscription %s: %v", name, outcome.Err)
		}
	}
	for name, texts := range c.says {
		contains(t, name, got[name].Err, texts)
	}
	for name, texts := range c.held {
		contains(t, name, got[name].Constrained, texts)
	}
}

func contains(t *testing.T, name string, err error, texts []string) {
	t.Helper()
	for _, text := range texts {
		if err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("subscription %s: error\n%v\ndoes not contain\n%s", name, err, text)
		}
	}
}

func runAll(t *testing.T, cases []ruleCase) {
	t.Helper()
	for i := range cases {
		t.Run(cases[i].rule, cases[i].run)
	}
}

// lamp returns a package with a chain of versions in stable and other versions elsewhere.
func lamp() pack {
	return of("lamp",
		line("stable", "lamp.v1.0.0", "lamp.v1.1.0", "lamp.v1.2.0"),
		line("beta", "lamp.v1.0.0", "lamp.v2.0.0"),
		line("alpha", "lamp.v0.9.0"))
}

func TestCandidates(t *testing.T) {
	runAll(t, []ruleCase{
		{
			rule: "3.3 only the catalog that is named counts", shop: []pack{lamp()}, market: []pack{of("lamp", in("stable", at("lamp.v9.0.0")))},
			priority: map[resolution.CatalogKey]int{market: 100},
			subs:     []resolution.Subscription{sub("lamp")}, want: map[string]string{"my-lamp": "shop/stable/lamp.v1.2.0"},
		},
		{
			rule: "3.3 an empty channel is the default one", shop: []pack{lamp().byDefault("beta")},
			subs: []resolution.Subscription{sub("lamp")}, want: map[string]string{"my-lamp": "shop/beta/lamp.v2.0.0"},
		},
		{
			rule: "3.3 an empty channel is all of them by name when there is no default one", shop: []pack{lamp().byDefault("missing")},
			subs: []resolution.Subscription{sub("lamp")}, want: map[string]string{"my-lamp": "shop/alpha/lamp.v0.9.0"},
		},
		{
			rule: "3.3 an empty channel falls back to the others in their order",
			shop: []pack{lamp().with("lamp.v1.0.0", prop("olm.deprecated", `{}`)).with("lamp.v1.1.0", prop("olm.deprecated", `{}`)).with("lamp.v1.2.0", prop("olm.deprecated", `{}`))},
			subs: []resolution.Subscription{sub("lamp")}, want: map[string]string{"my-lamp": "shop/alpha/lamp.v0.9.0 held"},
			held: map[string][]string{"my-lamp": {"bundle shop/olm/stable/lamp.v1.2.0 is deprecated"}},
		},
		{
			rule: "3.3 startingCSV is the only candidate of a first installation", shop: []pack{lamp()},
			subs: []resolution.Subscription{sub("lamp", channel("stable"), starting("lamp.v1.0.0"))}, want: map[string]string{"my-lamp": "shop/stable/lamp.v1.0.0"},
		},
		{
			rule: "3.3 startingCSV is not replaced by another version when it is impossible",
			shop: []pack{lamp().with("lamp.v1.0.0", needing("Nothing"))},
			subs: []resolution.Subscription{sub("lamp", channel("stable"), starting("lamp.v1.0.0"))}, want: map[string]string{"my-lamp": "failed"},
			says: map[string][]string{"my-lamp": {"subscription my-lamp requires shop/olm/stable/lamp.v1.0.0", "subscription my-lamp exists"}},
		},
		{
			rule: "3.3 startingCSV may be an entry that is skipped",
			shop: []pack{of("lamp", in("stable", at("lamp.v1.1.0", "skips", "lamp.v1.0.0"), at("lamp.v1.0.0")))},
			subs: []resolution.Subscription{sub("lamp", starting("lamp.v1.0.0"))}, want: map[string]string{"my-lamp": "shop/stable/lamp.v1.0.0"},
		},
		{
			rule: "3.3 startingCSV that is skipped may need an API that it brings itself",
			shop: []pack{of("lamp", in("stable", at("lamp.v1.1.0", "skips", "lamp.v1.0.0"), at("lamp.v1.0.0"))).with("lamp.v1.0.0", bringing("Lamp"), needing("Lamp"))},
			subs: []resolution.Subscription{sub("lamp", starting("lamp.v1.0.0"))}, want: map[string]string{"my-lamp": "shop/stable/lamp.v1.0.0"},
		},
		{
			rule: "3.3 startingCSV in an empty channel is looked for in all of them", shop: []pack{lamp()},
			subs: []resolution.Subscription{sub("lamp", starting("lamp.v0.9.0"))}, want: map[string]string{"my-lamp": "shop/alpha/lamp.v0.9.0"},
		},
		{
			rule: "3.3 at the head of the channel there is nothing to do", shop: []pack{lamp()}, present: []resolution.Operator{there("lamp.v1.2.0")},
			subs: []resolution.Subscription{sub("lamp", installed("lamp.v1.2.0"))}, want: map[string]string{"my-lamp": ""},
		},
		{
			rule: "3.3 a version that the channel does not know stays", shop: []pack{lamp()}, present: []resolution.Operator{there("lamp.v0.1.0")},
			subs: []resolution.Subscription{sub("lamp", installed("lamp.v0.1.0"))}, want: map[string]string{"my-lamp": ""},
		},
		{
			rule: "3.3 a head that is impossible gives way to the next entry of the chain", shop: []pack{lamp().with("lamp.v1.2.0", needing("Nothing"))},
			subs: []resolution.Subscription{sub("lamp", channel("stable"))}, want: map[string]string{"my-lamp": "shop/stable/lamp.v1.1.0 held"},
			held: map[string][]string{"my-lamp": {"bundle lamp.v1.2.0 requires an operator providing an API with group: g.example, version: v1, kind: Nothing"}},
		},
		{
			rule: "3.3 a skipped entry is no candidate of a first installation",
			shop: []pack{of("lamp", in("stable", at("lamp.v1.2.0", "replaces", "lamp.v1.1.0", "skips", "lamp.v1.1.0"), at("lamp.v1.1.0", "replaces", "lamp.v1.0.0"), at("lamp.v1.0.0"))).with("lamp.v1.2.0", needing("Nothing"))},
			subs: []resolution.Subscription{sub("lamp")}, want: map[string]string{"my-lamp": "shop/stable/lamp.v1.0.0 held"},
			held: map[string][]string{"my-lamp": {"bundle lamp.v1.2.0 requires"}},
		},
	})
}

// TestSuccessors checks which versions may replace the installed one.
func TestSuccessors(t *testing.T) {
	runAll(t, []ruleCase{
		{
			rule: "3.3 the head of the channel is installed", shop: []pack{lamp()},
			subs: []resolution.Subscription{sub("lamp", channel("beta"))}, want: map[string]string{"my-lamp": "shop/beta/lamp.v2.0.0"},
		},
		{
			rule: "3.3 startingCSV is ignored once something is installed", shop: []pack{lamp()}, present: []resolution.Operator{there("lamp.v1.1.0")},
			subs: []resolution.Subscription{sub("lamp", starting("lamp.v1.0.0"), installed("lamp.v1.1.0"))}, want: map[string]string{"my-lamp": "shop/stable/lamp.v1.2.0"},
		},
		{
			rule: "3.3 an update replaces what is installed", shop: []pack{lamp()}, present: []resolution.Operator{there("lamp.v1.0.0")},
			subs: []resolution.Subscription{sub("lamp", installed("lamp.v1.0.0"))}, want: map[string]string{"my-lamp": "shop/stable/lamp.v1.1.0"},
		},
		{
			rule:    "3.3 one hop at a time, to the best entry that skips what is installed",
			shop:    []pack{of("lamp", in("stable", at("lamp.v3.0.0", "replaces", "lamp.v2.0.0"), at("lamp.v2.0.0", "replaces", "lamp.v1.1.0", "skips", "lamp.v1.0.0"), at("lamp.v1.1.0", "replaces", "lamp.v1.0.0"), at("lamp.v1.0.0")))},
			present: []resolution.Operator{there("lamp.v1.0.0")},
			subs:    []resolution.Subscription{sub("lamp", installed("lamp.v1.0.0"))}, want: map[string]string{"my-lamp": "shop/stable/lamp.v2.0.0"},
		},
		{
			rule:    "3.3 an update goes by skipRange",
			shop:    []pack{of("lamp", in("stable", at("lamp.v3.0.0", "range", ">=1.0.0 <3.0.0"), at("lamp.v1.0.0")).and(at("lamp.v2.0.0", "replaces", "lamp.v1.0.0")).headed("lamp.v3.0.0", "lamp.v2.0.0"))},
			present: []resolution.Operator{there("lamp.v1.0.0")},
			subs:    []resolution.Subscription{sub("lamp", installed("lamp.v1.0.0"))}, want: map[string]string{"my-lamp": "shop/stable/lamp.v3.0.0"},
		},
		{
			rule:    "3.3 a skipRange that does not cover the version offers nothing",
			shop:    []pack{of("lamp", in("stable", at("lamp.v3.0.0", "range", ">=1.1.0 <3.0.0")))},
			present: []resolution.Operator{there("lamp.v1.0.0")},
			subs:    []resolution.Subscription{sub("lamp", installed("lamp.v1.0.0"))}, want: map[string]string{"my-lamp": ""},
		},
		{
			rule: "3.3 an update that cannot be had leaves what is installed", shop: []pack{lamp().with("lamp.v1.1.0", needing("Nothing"))},
			present: []resolution.Operator{there("lamp.v1.0.0")},
			subs:    []resolution.Subscription{sub("lamp", channel("stable"), installed("lamp.v1.0.0"))}, want: map[string]string{"my-lamp": "held"},
			held: map[string][]string{"my-lamp": {"bundle lamp.v1.1.0 requires an operator providing an API with group: g.example, version: v1, kind: Nothing"}},
		},
		{
			rule: "3.3 an update does not jump over what it cannot have", shop: []pack{lamp().with("lamp.v1.1.0", prop("olm.deprecated", `{}`))},
			present: []resolution.Operator{there("lamp.v1.0.0")},
			subs:    []resolution.Subscription{sub("lamp", channel("stable"), installed("lamp.v1.0.0"))}, want: map[string]string{"my-lamp": "held"},
			held: map[string][]string{"my-lamp": {"bundle shop/olm/stable/lamp.v1.1.0 is deprecated"}},
		},
		{
			rule: "3.3 an update of an empty channel prefers the default one", shop: []pack{lamp()}, present: []resolution.Operator{there("lamp.v1.0.0")},
			subs: []resolution.Subscription{sub("lamp", installed("lamp.v1.0.0"))}, want: map[string]string{"my-lamp": "shop/stable/lamp.v1.1.0"},
		},
		{
			rule: "3.3 an update follows another channel when that is set", shop: []pack{lamp()}, present: []resolution.Operator{there("lamp.v1.0.0")},
			subs: []resolution.Subscription{sub("lamp", channel("beta"), installed("lamp.v1.0.0"))}, want: map[string]string{"my-lamp": "shop/beta/lamp.v2.0.0"},
		},
	})
}

// headed makes an entry replace another one.
func (l lane) headed(head, below string) lane {
	for i := range l.entries {
		if l.entries[i].Bundle == head {
			l.entries[i].Replaces = below
		}
	}
	return l
}

func (l lane) and(entries ...content.ChannelEntry) lane {
	l.entries = append(l.entries, entries...)
	return l
}

func TestNoCandidates(t *testing.T) {
	gone := resolution.CatalogKey{Namespace: "far", Name: "gone"}
	runAll(t, []ruleCase{
		{
			rule: "3.3 no catalog", shop: []pack{lamp()}, subs: []resolution.Subscription{sub("lamp", from(gone))}, want: map[string]string{"my-lamp": "failed"},
			says: map[string][]string{"my-lamp": {
				"constraints not satisfiable: ", "no operators found from catalog gone in namespace far referenced by subscription my-lamp", "subscription my-lamp exists", "olm/shop",
			}},
		},
		{
			rule: "3.3 no package", shop: []pack{lamp()}, subs: []resolution.Subscription{sub("lantern")}, want: map[string]string{"my-lantern": "failed"},
			says: map[string][]string{"my-lantern": {"no operators found in package lantern in the catalog referenced by subscription my-lantern", "check spec.name"}},
		},
		{
			rule: "3.3 no channel", shop: []pack{lamp()}, subs: []resolution.Subscription{sub("lamp", channel("gamma"))}, want: map[string]string{"my-lamp": "failed"},
			says: map[string][]string{"my-lamp": {"no operators found in channel gamma of package lamp in the catalog referenced by subscription my-lamp", "alpha, beta, stable"}},
		},
		{
			rule: "3.3 no entry of that name", shop: []pack{lamp()}, subs: []resolution.Subscription{sub("lamp", channel("stable"), starting("lamp.v7.0.0"))}, want: map[string]string{"my-lamp": "failed"},
			says: map[string][]string{"my-lamp": {
				"no operators found with name lamp.v7.0.0 in channel stable of package lamp in the catalog referenced by subscription my-lamp", "set spec.startingCSV",
			}},
		},
		{
			rule: "2 a catalog that cannot be read fails who needs it", down: []resolution.CatalogKey{shop}, subs: []resolution.Subscription{sub("lamp")}, want: map[string]string{"my-lamp": "failed"},
			says: map[string][]string{"my-lamp": {"error using catalogsource olm/shop: no registry client established"}},
		},
		{
			rule: "2 a catalog that cannot be read and that nobody uses hurts nobody", shop: []pack{lamp()}, down: []resolution.CatalogKey{market, bazaar},
			subs: []resolution.Subscription{sub("lamp")}, want: map[string]string{"my-lamp": "shop/stable/lamp.v1.2.0"},
		},
		{
			rule: "2 a catalog that cannot be read does not hurt those of another one", shop: []pack{lamp()}, down: []resolution.CatalogKey{market},
			subs: []resolution.Subscription{sub("lamp"), sub("crate", from(market))}, want: map[string]string{"my-lamp": "shop/stable/lamp.v1.2.0", "my-crate": "failed"},
			says: map[string][]string{"my-crate": {"error using catalogsource home/market: no registry client established"}},
		},
		{
			rule: "3.3 a channel without a head", shop: []pack{of("lamp", in("stable", at("a", "replaces", "b"), at("b", "replaces", "a"))).unversioned(), lone("crate")},
			subs: []resolution.Subscription{sub("lamp"), sub("crate")}, want: map[string]string{"my-lamp": "failed", "my-crate": "shop/stable/crate.v1.0.0"},
			says: map[string][]string{"my-lamp": {`no channel heads (entries not replaced by another entry) found in channel "stable" of package "lamp"`, "ask the publisher of the catalog to fix it"}},
		},
		{
			rule: "3.3 a cycle below the head", shop: []pack{of("lamp", in("stable", at("c", "replaces", "b"), at("b", "replaces", "a"), at("a", "replaces", "b"))).unversioned(), lone("crate")},
			subs: []resolution.Subscription{sub("lamp"), sub("crate")}, want: map[string]string{"my-lamp": "failed", "my-crate": "shop/stable/crate.v1.0.0"},
			says: map[string][]string{"my-lamp": {`a cycle exists in the chain of replacement beginning with "c" in channel "stable" of package "lamp"`}},
		},
		{
			rule: "3.3 several heads", shop: []pack{of("lamp", in("stable", at("d", "replaces", "c"), at("c"), at("b", "replaces", "a"), at("a"))).unversioned(), lone("crate")},
			subs: []resolution.Subscription{sub("lamp"), sub("crate")}, want: map[string]string{"my-lamp": "failed", "my-crate": "shop/stable/crate.v1.0.0"},
			says: map[string][]string{"my-lamp": {"a unique replacement chain within a channel is required to determine the relative order between channel entries, " +
				`but 2 replacement chains were found in channel "stable" of package "lamp": b...a, d...c`}},
		},
		{
			rule: "3.3 an entry that replaces what is missing ends the chain", shop: []pack{of("lamp", in("stable", at("lamp.v1.1.0", "replaces", "lamp.v1.0.0")))},
			subs: []resolution.Subscription{sub("lamp")}, want: map[string]string{"my-lamp": "shop/stable/lamp.v1.1.0"},
		},
		{
			rule: "3.3 what is missing from the channel can be replaced nevertheless", shop: []pack{of("lamp", in("stable", at("lamp.v1.1.0", "replaces", "lamp.v1.0.0")))},
			present: []resolution.Operator{there("lamp.v1.0.0")},
			subs:    []resolution.Subscription{sub("lamp", installed("lamp.v1.0.0"))}, want: map[string]string{"my-lamp": "shop/stable/lamp.v1.1.0"},
		},
		{
			rule: "3.3 a broken channel does not matter to who names another one", shop: []pack{of("lamp", line("stable", "lamp.v1.0.0"), in("broken", at("lamp.v1.0.0"), at("lamp.v1.1.0")))},
			subs: []resolution.Subscription{sub("lamp", channel("stable"))}, want: map[string]string{"my-lamp": "shop/stable/lamp.v1.0.0"},
		},
	})
}

// unversioned removes the versions of the bundles.
func (p pack) unversioned() pack {
	p.withoutVersion = true
	return p
}

func TestConstraints(t *testing.T) {
	const needsLid = "bundle crate.v1.0.0 requires an operator providing an API with group: g.example, version: v1, kind: Lid"
	runAll(t, []ruleCase{
		{
			rule: "3.4 a dependency that nothing provides", shop: []pack{lone("crate", needing("Lid")), lamp()},
			subs: []resolution.Subscription{sub("crate"), sub("lamp")}, want: map[string]string{"my-crate": "failed", "my-lamp": "shop/stable/lamp.v1.2.0"},
			says: map[string][]string{"my-crate": {
				"constraints not satisfiable: ", needsLid, "subscription my-crate exists", "subscription my-crate requires shop/olm/stable/crate.v1.0.0", "create a CatalogSource that has one",
			}},
		},
		{
			rule: "3.4 a Subscription with several candidates", shop: []pack{lamp().with("lamp.v1.0.0", needing("Lid")).with("lamp.v1.1.0", needing("Lid")).with("lamp.v1.2.0", needing("Lid"))},
			subs: []resolution.Subscription{sub("lamp", channel("stable"))}, want: map[string]string{"my-lamp": "failed"},
			says: map[string][]string{"my-lamp": {
				"subscription my-lamp requires at least one of shop/olm/stable/lamp.v1.2.0, shop/olm/stable/lamp.v1.1.0 or shop/olm/stable/lamp.v1.0.0",
			}},
		},
		{
			rule: "3.4 a deprecated bundle", shop: []pack{lone("crate", prop("olm.deprecated", `{}`))},
			subs: []resolution.Subscription{sub("crate")}, want: map[string]string{"my-crate": "failed"},
			says: map[string][]string{"my-crate": {"bundle shop/olm/stable/crate.v1.0.0 is deprecated"}},
		},
		{
			rule: "3.4 a deprecated bundle is no provider", shop: []pack{lone("crate", needing("Lid")), of("lid", line("stable", "lid.v1.0.0", "lid.v2.0.0")).with("lid.v1.0.0", bringing("Lid")).with("lid.v2.0.0", bringing("Lid"), prop("olm.deprecated", `{}`))},
			subs: []resolution.Subscription{sub("crate")}, want: map[string]string{"my-crate": "shop/stable/crate.v1.0.0 +shop/stable/lid.v1.0.0"},
		},
		{
			rule: "3.4 one provider of an API", shop: []pack{lone("crate", bringing("Crate")), lone("barrel", bringing("Crate")), lamp()},
			subs: []resolution.Subscription{sub("crate"), sub("barrel"), sub("lamp")},
			want: map[string]string{"my-crate": "shop/stable/crate.v1.0.0", "my-barrel": "failed", "my-lamp": "shop/stable/lamp.v1.2.0"},
			says: map[string][]string{"my-barrel": {"there can be only one provider of Crate (g.example/v1)", "subscription my-crate exists", "subscription my-barrel exists"}},
		},
		{
			rule: "3.4 the senior Subscription keeps the API", shop: []pack{lone("crate", bringing("Crate")), lone("barrel", bringing("Crate"))},
			subs: []resolution.Subscription{sub("barrel"), sub("crate")}, want: map[string]string{"my-barrel": "shop/stable/barrel.v1.0.0", "my-crate": "failed"},
			says: map[string][]string{"my-crate": {"there can be only one provider of Crate (g.example/v1)"}},
		},
		{
			rule: "3.4 one operator of a package", shop: []pack{lamp()}, market: []pack{lamp()},
			subs: []resolution.Subscription{sub("lamp"), sub("lamp", called("other"), from(market))}, want: map[string]string{"my-lamp": "shop/stable/lamp.v1.2.0", "other": "failed"},
			says: map[string][]string{"other": {"there can be only one operator from package lamp", "subscription my-lamp exists", "subscription other exists"}},
		},
		{
			rule: "3.4 two Subscriptions that ask for the same share it", shop: []pack{lamp()},
			subs: []resolution.Subscription{sub("lamp"), sub("lamp", called("other"))}, want: map[string]string{"my-lamp": "shop/stable/lamp.v1.2.0", "other": "shop/stable/lamp.v1.2.0"},
		},
		{
			rule: "3.4 what replaces a version may bring its API", shop: []pack{lamp().with("lamp.v1.1.0", bringing("Lamp"))}, present: []resolution.Operator{there("lamp.v1.0.0", bringing("Lamp"))},
			subs: []resolution.Subscription{sub("lamp", installed("lamp.v1.0.0"))}, want: map[string]string{"my-lamp": "shop/stable/lamp.v1.1.0"},
		},
		{
			rule: "3.4 dependencies pull dependencies", shop: []pack{lone("crate", needing("Lid")), lone("lid", bringing("Lid"), needingPackage("nail", ">=1.0.0")), of("nail", line("stable", "nail.v1.0.0", "nail.v2.0.0"))},
			subs: []resolution.Subscription{sub("crate")}, want: map[string]string{"my-crate": "shop/stable/crate.v1.0.0 +shop/stable/nail.v2.0.0 +shop/stable/lid.v1.0.0"},
		},
		{
			rule: "3.4 dependencies in a circle come together", shop: []pack{lone("crate", bringing("Crate"), needing("Lid")), lone("lid", bringing("Lid"), needing("Crate"))},
			subs: []resolution.Subscription{sub("crate")}, want: map[string]string{"my-crate": "shop/stable/crate.v1.0.0 +shop/stable/lid.v1.0.0"},
		},
		{
			rule: "3.4 an impossible dependency of a dependency", shop: []pack{lone("crate", needing("Lid")), lone("lid", bringing("Lid"), needing("Nothing"))},
			subs: []resolution.Subscription{sub("crate")}, want: map[string]string{"my-crate": "failed"},
			says: map[string][]string{"my-crate": {needsLid, "bundle lid.v1.0.0 requires an operator providing an API with group: g.example, version: v1, kind: Nothing"}},
		},
		{
			rule: "3.4 what another Subscription brings does not come along", shop: []pack{lone("crate", needing("Lid")), lone("lid", bringing("Lid"))},
			subs: []resolution.Subscription{sub("crate"), sub("lid")}, want: map[string]string{"my-crate": "shop/stable/crate.v1.0.0", "my-lid": "shop/stable/lid.v1.0.0"},
		},
		{
			rule: "3.4 three impossible ones of five explain themselves and two install",
			shop: []pack{lamp(), lone("tray"), lone("crate", needing("Lid")), lone("odd", prop("olm.gvk.required", `7`)), lone("old", prop("olm.deprecated", `{}`))},
			subs: []resolution.Subscription{sub("crate"), sub("lamp"), sub("odd"), sub("old"), sub("tray")},
			want: map[string]string{"my-crate": "failed", "my-lamp": "shop/stable/lamp.v1.2.0", "my-odd": "failed", "my-old": "failed", "my-tray": "shop/stable/tray.v1.0.0"},
			says: map[string][]string{"my-crate": {needsLid}, "my-odd": {`package "odd", bundle "odd.v1.0.0": properties[0] of type "olm.gvk.required"`}, "my-old": {"is deprecated"}},
		},
	})
}

// TestPresentOperators uses present operators, which are facts.
func TestPresentOperators(t *testing.T) {
	runAll(t, []ruleCase{
		{
			rule: "3.4 what is installed may be deprecated", shop: []pack{lone("crate", prop("olm.deprecated", `{}`))}, present: []resolution.Operator{there("crate.v1.0.0", prop("olm.deprecated", `{}`))},
			subs: []resolution.Subscription{sub("crate", installed("crate.v1.0.0"))}, want: map[string]string{"my-crate": ""},
		},
		{
			rule: "3.4 an existing CSV that no Subscription claims excludes another provider", shop: []pack{lone("crate", bringing("Crate"))}, present: []resolution.Operator{stray("old-crate", bringing("Crate"))},
			subs: []resolution.Subscription{sub("crate")}, want: map[string]string{"my-crate": "failed"},
			says: map[string][]string{"my-crate": {
				"clusterserviceversion old-crate exists and is not referenced by a subscription", "@existing/home//old-crate and shop/olm/stable/crate.v1.0.0 provide Crate (g.example/v1)",
				"kubectl delete clusterserviceversion old-crate -n home",
			}},
		},
		{
			rule: "3.4 an existing CSV that no Subscription claims excludes another version of its package", shop: []pack{lone("crate")}, present: []resolution.Operator{there("crate.v0.1.0")},
			subs: []resolution.Subscription{sub("crate")}, want: map[string]string{"my-crate": "failed"},
			says: map[string][]string{"my-crate": {
				"clusterserviceversion crate.v0.1.0 exists and is not referenced by a subscription", "@existing/home//crate.v0.1.0 and shop/olm/stable/crate.v1.0.0 originate from package crate",
			}},
		},
		{
			rule: "3.4 an update must not bring the API of another operator", shop: []pack{lamp().with("lamp.v1.1.0", bringing("Crate"))},
			present: []resolution.Operator{there("lamp.v1.0.0"), there("crate.v1.0.0", bringing("Crate"))},
			subs:    []resolution.Subscription{sub("lamp", channel("stable"), installed("lamp.v1.0.0"))}, want: map[string]string{"my-lamp": "held"},
			held: map[string][]string{"my-lamp": {"@existing/home//crate.v1.0.0 and shop/olm/stable/lamp.v1.1.0 provide Crate (g.example/v1)"}},
		},
		{
			rule: "3.4 an update must not break what another operator needs", shop: []pack{lamp()},
			present: []resolution.Operator{there("lamp.v1.0.0", bringing("Lamp")), there("crate.v1.0.0", needing("Lamp"))},
			subs:    []resolution.Subscription{sub("lamp", installed("lamp.v1.0.0"))}, want: map[string]string{"my-lamp": "held"},
			held: map[string][]string{"my-lamp": {"clusterserviceversion crate.v1.0.0 requires an operator providing an API with group: g.example, version: v1, kind: Lamp"}},
		},
		{
			rule: "3.4 an update may break what is broken already", shop: []pack{lamp()},
			present: []resolution.Operator{there("lamp.v1.0.0"), there("crate.v1.0.0", needing("Lamp"))},
			subs:    []resolution.Subscription{sub("lamp", installed("lamp.v1.0.0"))}, want: map[string]string{"my-lamp": "shop/stable/lamp.v1.1.0"},
		},
		{
			rule: "3.4 an operator that meets its own requirement holds nobody back", shop: []pack{lamp()},
			present: []resolution.Operator{there("lamp.v1.0.0", bringing("Lamp")), there("crate.v1.0.0", bringing("Lamp"), needing("Lamp"))},
			subs:    []resolution.Subscription{sub("lamp", channel("stable"), installed("lamp.v1.0.0"))}, want: map[string]string{"my-lamp": "shop/stable/lamp.v1.1.0"},
		},
		{
			rule: "3.4 an update must not break what several operators meet together", shop: []pack{lamp()},
			present: []resolution.Operator{
				there("lamp.v1.0.0", bringing("Lamp")), there("lid.v1.0.0"), there("crate.v1.0.0", constrained(compound("all", ofGVK("Lamp"), ofPackage("lid", ">=1.0.0")))),
			},
			subs: []resolution.Subscription{sub("lamp", channel("stable"), installed("lamp.v1.0.0"))}, want: map[string]string{"my-lamp": "held"},
			held: map[string][]string{"my-lamp": {"clusterserviceversion crate.v1.0.0 requires an operator"}},
		},
		{
			rule:    "3.4 an update must not break what a new operator needs of several",
			shop:    []pack{lamp(), lone("crate", constrained(compound("all", ofGVK("Lamp"), ofPackage("lid", ">=1.0.0"))))},
			present: []resolution.Operator{there("lamp.v1.0.0", bringing("Lamp")), there("lid.v1.0.0")},
			subs:    []resolution.Subscription{sub("lamp", channel("stable"), installed("lamp.v1.0.0")), sub("crate")},
			want:    map[string]string{"my-lamp": "held", "my-crate": "shop/stable/crate.v1.0.0"},
			held:    map[string][]string{"my-lamp": {"bundle crate.v1.0.0 requires an operator"}},
		},
		{
			rule: "3.4 an update brings what it needs", shop: []pack{lamp().with("lamp.v1.1.0", needing("Lid")), lone("lid", bringing("Lid"))}, present: []resolution.Operator{there("lamp.v1.0.0")},
			subs: []resolution.Subscription{sub("lamp", installed("lamp.v1.0.0"))}, want: map[string]string{"my-lamp": "shop/stable/lamp.v1.1.0 +shop/stable/lid.v1.0.0"},
		},
	})
}

// TestPreference has a case for each level of the order of providers. Both providers match, and only this level
// distinguishes them.
func TestPreference(t *testing.T) {
	crate, lid := lone("crate", needing("Lid")), lone("lid", bringing("Lid"))
	runAll(t, []ruleCase{
		{
			rule: "3.5 an existing CSV comes first", shop: []pack{crate, lid}, present: []resolution.Operator{stray("present", bringing("Lid"))},
			subs: []resolution.Subscription{sub("crate")}, want: map[string]string{"my-crate": "shop/stable/crate.v1.0.0"},
		},
		{
			rule: "3.5 the same catalog comes before the priority of others", shop: []pack{crate, lid}, bazaar: []pack{lid}, priority: map[resolution.CatalogKey]int{bazaar: 100},
			subs: []resolution.Subscription{sub("crate")}, want: map[string]string{"my-crate": "shop/stable/crate.v1.0.0 +shop/stable/lid.v1.0.0"},
		},
		{
			rule: "3.5 the catalog of the highest priority comes before the own namespace", shop: []pack{crate}, bazaar: []pack{lid}, market: []pack{lid}, priority: map[resolution.CatalogKey]int{bazaar: 1},
			subs: []resolution.Subscription{sub("crate")}, want: map[string]string{"my-crate": "shop/stable/crate.v1.0.0 +bazaar/stable/lid.v1.0.0"},
		},
		{
			rule: "3.5 the own namespace comes before the global one", shop: []pack{crate}, bazaar: []pack{lid}, market: []pack{lid},
			subs: []resolution.Subscription{sub("crate")}, want: map[string]string{"my-crate": "shop/stable/crate.v1.0.0 +market/stable/lid.v1.0.0"},
		},
		{
			rule: "3.5 catalogs by name", market: []pack{crate}, bazaar: []pack{lid}, shop: []pack{lid},
			subs: []resolution.Subscription{sub("crate", from(market))}, want: map[string]string{"my-crate": "market/stable/crate.v1.0.0 +bazaar/stable/lid.v1.0.0"},
		},
		{
			rule: "3.5 the default channel comes before the name of the package",
			shop: []pack{crate, of("a-lid", in("stable", at("a-lid.v2.0.0")), in("other", at("a-lid.v1.0.0"))).with("a-lid.v1.0.0", bringing("Lid")), lid},
			subs: []resolution.Subscription{sub("crate")}, want: map[string]string{"my-crate": "shop/stable/crate.v1.0.0 +shop/stable/lid.v1.0.0"},
		},
		{
			rule: "3.5 packages by name", shop: []pack{crate, lid, lone("a-lid", bringing("Lid"))},
			subs: []resolution.Subscription{sub("crate")}, want: map[string]string{"my-crate": "shop/stable/crate.v1.0.0 +shop/stable/a-lid.v1.0.0"},
		},
		{
			rule: "3.5 channels by name",
			shop: []pack{crate, of("lid", in("stable", at("lid.v3.0.0")), in("b", at("lid.v2.0.0")), in("a", at("lid.v1.0.0"))).with("lid.v1.0.0", bringing("Lid")).with("lid.v2.0.0", bringing("Lid"))},
			subs: []resolution.Subscription{sub("crate")}, want: map[string]string{"my-crate": "shop/stable/crate.v1.0.0 +shop/a/lid.v1.0.0"},
		},
		{
			rule: "3.5 the head of the channel first",
			shop: []pack{crate, of("lid", line("stable", "lid.v1.0.0", "lid.v2.0.0", "lid.v3.0.0")).with("lid.v1.0.0", bringing("Lid")).with("lid.v2.0.0", bringing("Lid")).with("lid.v3.0.0", bringing("Lid"))},
			subs: []resolution.Subscription{sub("crate")}, want: map[string]string{"my-crate": "shop/stable/crate.v1.0.0 +shop/stable/lid.v3.0.0"},
		},
		{
			rule: "3.5 the nearest to the head that is in the range",
			shop: []pack{lone("crate", needingPackage("lid", "<3.0.0")), of("lid", line("stable", "lid.v1.0.0", "lid.v2.0.0", "lid.v3.0.0"))},
			subs: []resolution.Subscription{sub("crate")}, want: map[string]string{"my-crate": "shop/stable/crate.v1.0.0 +shop/stable/lid.v2.0.0"},
		},
		{
			rule: "3.5 the next best where the best one is impossible", shop: []pack{crate, lid, lone("a-lid", bringing("Lid"), needing("Nothing"))},
			subs: []resolution.Subscription{sub("crate")}, want: map[string]string{"my-crate": "shop/stable/crate.v1.0.0 +shop/stable/lid.v1.0.0"},
		},
		{
			rule: "3.5 the best version of a Subscription before the best provider",
			shop: []pack{of("crate", line("stable", "crate.v1.0.0", "crate.v2.0.0")).with("crate.v2.0.0", needing("Lid"), bringing("Crate")), lone("a-lid", bringing("Lid"), bringing("Crate")), lid},
			subs: []resolution.Subscription{sub("crate")}, want: map[string]string{"my-crate": "shop/stable/crate.v2.0.0 +shop/stable/lid.v1.0.0"},
		},
	})
}

func TestConstraintTypes(t *testing.T) {
	needs := func(c string) pack { return lone("crate", constrained(c)) }
	alone := map[string]string{"my-crate": "shop/stable/crate.v1.0.0"}
	withLid := map[string]string{"my-crate": "shop/stable/crate.v1.0.0 +shop/stable/lid.v1.0.0"}
	failed := map[string]string{"my-crate": "failed"}
	crate := []resolution.Subscription{sub("crate")}
	lid := lone("lid", bringing("Lid"))
	runAll(t, []ruleCase{
		{rule: "3.6 olm.package.required", shop: []pack{lone("crate", needingPackage("lid", ">=1.0.0 <2.0.0")), lid}, subs: crate, want: withLid},
		{
			rule: "3.6 olm.package.required of a version that is not there", shop: []pack{lone("crate", needingPackage("lid", ">=2.0.0")), lid}, subs: crate, want: failed,
			says: map[string][]string{"my-crate": {"bundle crate.v1.0.0 requires an operator with package: lid and with version in range: >=2.0.0"}},
		},
		{rule: "3.6 olm.gvk.required", shop: []pack{lone("crate", needing("Lid")), lid}, subs: crate, want: withLid},
		{rule: "3.6 olm.gvk.required is met by what brings the API itself", shop: []pack{lone("crate", needing("Crate"), bringing("Crate"))}, subs: crate, want: alone},
		{rule: "3.6 olm.label.required", shop: []pack{lone("crate", needingLabel("blue")), lone("lid", labelled("blue"))}, subs: crate, want: withLid},
		{
			rule: "3.6 olm.label.required that nothing bears", shop: []pack{lone("crate", needingLabel("blue")), lone("lid", labelled("red"))}, subs: crate, want: failed,
			says: map[string][]string{"my-crate": {"bundle crate.v1.0.0 requires an operator with label: blue"}},
		},
		{rule: "3.6 olm.constraint of an API", shop: []pack{needs(ofGVK("Lid")), lid}, subs: crate, want: withLid},
		{rule: "3.6 olm.constraint of a package", shop: []pack{needs(ofPackage("lid", "1.0.0")), lid}, subs: crate, want: withLid},
		{
			rule: "3.6 olm.constraint says its failure message", shop: []pack{needs(`{"failureMessage":"a lid is needed","gvk":{"group":"g.example","version":"v1","kind":"Lid"}}`)}, subs: crate, want: failed,
			says: map[string][]string{"my-crate": {"bundle crate.v1.0.0 requires an operator a lid is needed"}},
		},
		{rule: "3.6 all, met by one operator", shop: []pack{needs(compound("all", ofGVK("Lid"), ofPackage("lid", ">=1.0.0"))), lid}, subs: crate, want: withLid},
		{
			rule: "3.6 all, met by one operator that is not the first of each", shop: []pack{needs(compound("all", ofGVK("Lid"), ofPackage("lid", ">=1.0.0"))), lone("a-lid", bringing("Lid")), lid},
			subs: crate, want: withLid,
		},
		{
			rule: "3.6 all, met by several operators", shop: []pack{needs(compound("all", ofPackage("lid", ">=1.0.0"), ofPackage("nail", ">=1.0.0"))), lid, lone("nail")},
			subs: crate, want: map[string]string{"my-crate": "shop/stable/crate.v1.0.0 +shop/stable/lid.v1.0.0 +shop/stable/nail.v1.0.0"},
		},
		{
			rule: "3.6 all, met by none", shop: []pack{needs(compound("all", ofPackage("lid", ">=1.0.0"), ofPackage("nail", ">=1.0.0"))), lid}, subs: crate, want: failed,
			says: map[string][]string{"my-crate": {"bundle crate.v1.0.0 requires an operator "}},
		},
		{rule: "3.6 any", shop: []pack{needs(compound("any", ofGVK("Nothing"), ofGVK("Lid"))), lid}, subs: crate, want: withLid},
		{rule: "3.6 not", shop: []pack{needs(compound("all", ofGVK("Lid"), compound("not", ofPackage("a-lid", ">=0.0.0")))), lone("a-lid", bringing("Lid")), lid}, subs: crate, want: withLid},
		{rule: "3.6 cel", shop: []pack{needs(ofRule("properties.exists(p, p.type == 'olm.package' && p.value.packageName == 'lid' && semver_compare(p.value.version, '1.0.0') >= 0)")), lid}, subs: crate, want: withLid},
		{
			rule: "3.6 cel that cannot be evaluated is not met", shop: []pack{needs(ofRule("properties[99].type == 'olm.package'")), lid}, subs: crate, want: failed,
			says: map[string][]string{"my-crate": {"bundle crate.v1.0.0 requires an operator"}},
		},
		{rule: "3.6 properties of unknown types mean nothing", shop: []pack{lone("crate", prop("olm.maxOpenShiftVersion", `"4.9"`), prop("made.up", `{"a":1}`))}, subs: crate, want: alone},
		{rule: "3.9 olm.maxOpenShiftVersion is not the resolver's", shop: []pack{lone("crate", prop("olm.maxOpenShiftVersion", `"1.0"`))}, subs: crate, want: alone},
	})
}

func TestExistingOperators(t *testing.T) {
	runAll(t, []ruleCase{
		{
			rule: "3.2 an operator without a package is a fact like others", shop: []pack{lamp()}, present: []resolution.Operator{stray("homemade", bringing("Homemade"), needing("Nothing"))},
			subs: []resolution.Subscription{sub("lamp")}, want: map[string]string{"my-lamp": "shop/stable/lamp.v1.2.0"},
		},
		{
			rule: "3.2 two operators that exclude each other harm nobody else", shop: []pack{lamp()}, present: []resolution.Operator{stray("one", bringing("X")), stray("two", bringing("X"))},
			subs: []resolution.Subscription{sub("lamp")}, want: map[string]string{"my-lamp": "shop/stable/lamp.v1.2.0"},
		},
		{
			rule: "3.2 an operator meets a dependency by its package", shop: []pack{lone("crate", needingPackage("lamp", ">=1.0.0"))}, present: []resolution.Operator{there("lamp.v1.0.0")},
			subs: []resolution.Subscription{sub("crate")}, want: map[string]string{"my-crate": "shop/stable/crate.v1.0.0"},
		},
		{
			rule: "3.2 an operator that is too old is not replaced for a dependency", shop: []pack{lone("crate", needingPackage("lamp", ">=1.1.0")), lamp()}, present: []resolution.Operator{there("lamp.v1.0.0")},
			subs: []resolution.Subscription{sub("crate")}, want: map[string]string{"my-crate": "failed"},
			says: map[string][]string{"my-crate": {"clusterserviceversion lamp.v1.0.0 exists and is not referenced by a subscription", "bundle crate.v1.0.0 requires an operator with package: lamp and with version in range: >=1.1.0"}},
		},
		{
			rule: "3.2 an operator that a Subscription holds is updated for a dependency", shop: []pack{lone("crate", needingPackage("lamp", ">=1.1.0")), lamp()}, present: []resolution.Operator{there("lamp.v1.0.0")},
			subs: []resolution.Subscription{sub("crate"), sub("lamp", installed("lamp.v1.0.0"))}, want: map[string]string{"my-crate": "shop/stable/crate.v1.0.0", "my-lamp": "shop/stable/lamp.v1.1.0"},
		},
		{
			rule: "3.8 a frozen Subscription gets nothing new", shop: []pack{lamp()}, present: []resolution.Operator{there("lamp.v1.0.0")},
			subs: []resolution.Subscription{sub("lamp", installed("lamp.v1.0.0"), func(s *resolution.Subscription) { s.InProgress = true })}, want: map[string]string{"my-lamp": ""},
		},
		{
			rule: "3.10 a generated Subscription does not outrank a user's", shop: []pack{lamp()},
			subs: []resolution.Subscription{sub("lamp", called("made"), channel("beta"), func(s *resolution.Subscription) { s.Generated = true }), sub("lamp", channel("stable"))},
			want: map[string]string{"made": "failed", "my-lamp": "shop/stable/lamp.v1.2.0"},
			says: map[string][]string{"made": {"there can be only one operator from package lamp"}},
		},
	})
}

func TestBadInput(t *testing.T) {
	good := []resolution.Subscription{sub("bad"), sub("lamp")}
	onlyBad := map[string]string{"my-bad": "failed", "my-lamp": "shop/stable/lamp.v1.2.0"}
	bad := func(rule string, p constraint.Property, says ...string) ruleCase {
		return ruleCase{
			rule: rule, shop: []pack{lone("bad", p), lamp()}, subs: good, want: onlyBad,
			says: map[string][]string{"my-bad": append(says, `package "bad", bundle "bad.v1.0.0": `, "error using catalogsource olm/shop", "ask the publisher of the catalog to fix it")},
		}
	}
	endless := ofRule(strings.Repeat("properties.all(p, ", 20) + "p.type != ''" + strings.Repeat(")", 20))
	thousand := make([]string, 1000)
	impossible := []pack{lamp()}
	for i := range thousand {
		thousand[i] = ofPackage(fmt.Sprintf("p%d", i), ">=1.0.0")
		impossible = append(impossible, lone(fmt.Sprintf("p%d", i), needing("Nothing")))
	}
	runAll(t, []ruleCase{
		{
			rule: "a malformed version is none", shop: []pack{lone("bad", prop("olm.package", `{"packageName":"bad","version":"one"}`)), lamp()}, subs: good,
			want: map[string]string{"my-bad": "shop/stable/bad.v1.0.0", "my-lamp": "shop/stable/lamp.v1.2.0"},
		},
		bad("a malformed range", needingPackage("lamp", "newest"), `properties[0] of type "olm.package.required": parsing version range "newest"`),
		bad("a malformed property", prop("olm.gvk", `{"group":1}`), `properties[0] of type "olm.gvk": decoding value: wrong type: field "group" must be a string, found number`),
		bad("a property that is no JSON", prop("olm.gvk.required", `{`), `properties[0] of type "olm.gvk.required"`),
		bad("an unknown constraint", constrained(`{"xor":{"constraints":[]}}`), `properties[0] of type "olm.constraint"`, `unknown field "xor"`),
		bad("a constraint of nothing", constrained(`{}`), "exactly one of gvk, package, all, any, not and cel must be set, found 0"),
		bad("a rule that is no CEL", constrained(ofRule("properties.exists(")), `properties[0] of type "olm.constraint": convert olm.constraint to resolver predicate: compiling rule "properties.exists("`),
		bad("a bundle of another package", prop("olm.package", `{"packageName":"good","version":"1.0.0"}`), `property olm.package says that it is of package "good"`),
		{
			rule: "a rule that does not end for some", shop: []pack{lone("bad", constrained(endless)), lone("many", many(40)...), lamp()},
			subs: good, want: map[string]string{"my-bad": "shop/stable/bad.v1.0.0", "my-lamp": "shop/stable/lamp.v1.2.0"},
		},
		{
			rule: "a rule that does not end", shop: []pack{lone("bad", constrained(endless)), lone("many", many(40)...), lone("lamp", many(3)...)},
			subs: good, want: map[string]string{"my-bad": "failed", "my-lamp": "shop/stable/lamp.v1.0.0"},
			says: map[string][]string{"my-bad": {"bundle bad.v1.0.0 requires an operator with constraint: properties.all(p, "}},
		},
		{
			rule: "a thousand ways none of which is there", shop: []pack{lone("bad", constrained(compound("any", thousand...))), lamp()}, subs: good, want: onlyBad,
			says: map[string][]string{"my-bad": {"bundle bad.v1.0.0 requires an operator at least one of (with package: p0 and with version in range: >=1.0.0"}},
		},
		{
			rule: "a thousand ways the last of which is there", shop: []pack{lone("bad", constrained(compound("any", thousand...))), lone("p999"), lamp()},
			subs: good, want: map[string]string{"my-bad": "shop/stable/bad.v1.0.0 +shop/stable/p999.v1.0.0", "my-lamp": "shop/stable/lamp.v1.2.0"},
		},
		{
			rule: "a thousand ways all of which are impossible", shop: append(impossible, lone("bad", constrained(compound("any", thousand...)))), subs: good, want: onlyBad,
			says: map[string][]string{"my-bad": {"bundle bad.v1.0.0 requires an operator at least one of (with package: p0 and with version in range: >=1.0.0"}},
		},
		{
			rule: "a malformed skipRange covers nothing and harms nobody else", shop: []pack{of("bad", in("stable", at("bad.v2.0.0", "range", "all"))), lamp()},
			present: []resolution.Operator{there("bad.v1.0.0")}, subs: []resolution.Subscription{sub("bad", installed("bad.v1.0.0")), sub("lamp")},
			want: map[string]string{"my-bad": "held", "my-lamp": "shop/stable/lamp.v1.2.0"},
			held: map[string][]string{"my-bad": {"package bad, channel stable, bundle bad.v2.0.0: skipRange: ", `parsing version range "all"`, "ask the publisher of the catalog"}},
		},
		{
			rule: "a provider that cannot be read is passed over", shop: []pack{lone("bad", needing("Lid")), lone("a-lid", bringing("Lid"), prop("olm.constraint", `{}`)), lone("lid", bringing("Lid")), lamp()},
			subs: good, want: map[string]string{"my-bad": "shop/stable/bad.v1.0.0 +shop/stable/lid.v1.0.0", "my-lamp": "shop/stable/lamp.v1.2.0"},
		},
		{
			rule: "two catalogs with the same package", shop: []pack{lone("bad", needingPackage("lid", ">=1.0.0")), lamp()}, market: []pack{lone("lid"), lamp()}, bazaar: []pack{lone("lid"), lamp()},
			subs: good, want: map[string]string{"my-bad": "shop/stable/bad.v1.0.0 +market/stable/lid.v1.0.0", "my-lamp": "shop/stable/lamp.v1.2.0"},
		},
	})
}

// many returns a number of APIs.
func many(n int) []constraint.Property {
	out := make([]constraint.Property, n)
	for i := range out {
		out[i] = bringing(fmt.Sprintf("Kind%d", i))
	}
	return out
}
