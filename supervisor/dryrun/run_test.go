package dryrun

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chandlery/chandlery/bundles"
	"github.com/chandlery/chandlery/supervisor/resolution"
	"github.com/chandlery/chandlery/supervisor/resolution/constraint"
	"github.com/chandlery/chandlery/supervisor/resolution/content"
)

var shop = resolution.CatalogKey{Namespace: "olm", Name: "shop"}

// bundle returns a version of a package in channel stable.
func bundle(pkg, version, replaces string, properties ...constraint.Property) content.ChannelEntry {
	if replaces != "" {
		replaces = pkg + ".v" + replaces
	}
	text := fmt.Sprintf(`{"packageName":%q,"version":%q}`, pkg, version)
	return content.ChannelEntry{
		Package: pkg, Channel: "stable", Bundle: pkg + ".v" + version, Replaces: replaces,
		Properties: append([]constraint.Property{{Type: bundles.TypePackage, Value: text}}, properties...),
	}
}

func needs(pkg, versions string) constraint.Property {
	return constraint.Property{Type: bundles.TypePackageRequired, Value: fmt.Sprintf(`{"packageName":%q,"versionRange":%q}`, pkg, versions)}
}

// wares returns the catalog of the tests. It has a lamp with three versions, a radio that requires a battery,
// and a clock whose dependency no package meets. It also has a crude thing that does not declare its
// dependencies, and a mill whose manifests are in an image.
func wares(t *testing.T) *content.Catalog {
	t.Helper()
	b := content.NewBuilder(1 << 20)
	for _, l := range []content.ChannelEntry{
		bundle("lamp", "1.0.0", ""), bundle("lamp", "2.0.0", "1.0.0"), bundle("lamp", "3.0.0", "2.0.0"),
		bundle("radio", "1.0.0", "", needs("battery", "<2.0.0")),
		bundle("battery", "1.0.0", ""), bundle("battery", "1.5.0", "1.0.0"), bundle("battery", "2.0.0", "1.5.0"),
		bundle("clock", "1.0.0", "", needs("quartz", ">=1.0.0")),
		bundle("crude", "1.0.0", "", constraint.Property{Type: bundles.TypePackageRequired, Value: "[]"}),
	} {
		if err := b.Add(l); err != nil {
			t.Fatal(err)
		}
	}
	for _, pkg := range []string{"lamp", "radio", "battery", "clock", "crude", "mill"} {
		b.Describe(pkg, "stable", "")
	}
	// Only this bundle is not inline.
	mill := bundle("mill", "1.0.0", "")
	mill.Image = "registry.example/mill:1"
	if err := b.Add(mill); err != nil {
		t.Fatal(err)
	}
	b.DeprecateBundle("lamp", "lamp.v2.0.0", "it flickers")
	return b.Build()
}

func sub(name, pkg string, change ...func(*resolution.Subscription)) resolution.Subscription {
	s := resolution.Subscription{Name: name, Package: pkg, Catalog: shop}
	for _, c := range change {
		c(&s)
	}
	return s
}

func has(name string) func(*resolution.Subscription) {
	return func(s *resolution.Subscription) { s.Installed, s.OwnsInstalled = name, true }
}

func channel(name string) func(*resolution.Subscription) {
	return func(s *resolution.Subscription) { s.Channel = name }
}

func frozen(s *resolution.Subscription) { s.InProgress = true }

// request returns a request with an operator for each installed version of the Subscriptions.
func request(t *testing.T, subs ...resolution.Subscription) Request {
	t.Helper()
	c := wares(t)
	r := Request{Input: resolution.Input{
		Namespace: "home", Subscriptions: subs, Catalogs: map[resolution.CatalogKey]resolution.Catalog{shop: {Content: c}},
	}}
	for _, s := range subs {
		if s.Installed == "" {
			continue
		}
		o := resolution.Operator{Name: s.Installed, Subject: constraint.Subject{Package: s.Package}}
		if p := c.Package(s.Package); p != nil && p.Bundle(s.Installed) != nil {
			o.Subject, o.Requires = p.Bundle(s.Installed).Subject, p.Bundle(s.Installed).Requires
		}
		r.Input.Operators = append(r.Input.Operators, o)
	}
	return r
}

// short returns a result in a few lines.
func short(f *Result) []string {
	var out []string
	for _, s := range f.Steps {
		served := strings.Join(s.Subscriptions, "+")
		if s.Unfollowed != "" {
			served += "nobody (" + s.Unfollowed + ")"
		}
		text := fmt.Sprintf("%d wave %d plan %d %s %s for %s, %s", s.Order, s.Wave, s.Plan, s.Action, s.Bundle, served, s.Approval)
		if s.Replaces != "" {
			text += " over " + s.Replaces + " (" + s.FromVersion + ")"
		}
		if s.Generated {
			text += ", generated"
		}
		met := make([]string, 0, len(s.Needs))
		for _, need := range s.Needs {
			met = append(met, ", needs "+need.MetBy)
		}
		out = append(out, text+strings.Join(met, ""))
	}
	for _, r := range f.Refusals {
		out = append(out, fmt.Sprintf("no %s at %q: %s > %s", r.Subscription, r.Stays, r.Reason, r.Remedy))
	}
	for _, r := range f.Unknown {
		out = append(out, fmt.Sprintf("not known %s at %q: %s > %s", r.Subscription, r.Stays, r.Reason, r.Remedy))
	}
	for _, r := range f.HeldBack {
		out = append(out, fmt.Sprintf("held back %s at %s", r.Subscription, r.Stays))
	}
	for _, s := range f.UpToDate {
		out = append(out, "newest "+s.Subscription+": "+s.Bundle+" "+s.Version+" in "+s.Channel)
	}
	for _, s := range f.UnderWay {
		out = append(out, "under way "+s.Subscription+": "+s.Bundle)
	}
	return out
}

// runCase is a request and its expected result.
type runCase struct {
	reason string
	subs   []resolution.Subscription
	change func(*Request)
	want   []string
}

// runAll compares the results of requests with the expected ones.
func runAll(t *testing.T, cases map[string]runCase) {
	t.Helper()
	for name, tt := range cases {
		t.Run(name, func(t *testing.T) {
			r := request(t, tt.subs...)
			if tt.change != nil {
				tt.change(&r)
			}
			before := fmt.Sprintf("%+v", r.Input.Subscriptions)
			f, err := Run(t.Context(), r)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, short(f)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tt.reason, diff)
			}
			if after := fmt.Sprintf("%+v", r.Input.Subscriptions); after != before {
				t.Errorf("the request was changed from %s to %s", before, after)
			}
		})
	}
}

// TestRunVersions predicts updates of Subscriptions from version to version.
func TestRunVersions(t *testing.T) {
	runAll(t, map[string]runCase{
		"Head": {
			reason: "of nothing the head is installed, and then nothing more",
			subs:   []resolution.Subscription{sub("my", "lamp")},
			want:   []string{"1 wave 1 plan 1 install lamp.v3.0.0 for my, automatic"},
		},
		"Chain": {
			reason: "what replaces one by one is gone through one by one",
			subs:   []resolution.Subscription{sub("my", "lamp", has("lamp.v1.0.0"))},
			want: []string{
				"1 wave 1 plan 1 update lamp.v2.0.0 for my, automatic over lamp.v1.0.0 (1.0.0)",
				"2 wave 2 plan 2 update lamp.v3.0.0 for my, automatic over lamp.v2.0.0 (2.0.0)",
			},
		},
		"Manual": {
			reason: "what waits for approval does not keep from showing what follows",
			subs:   []resolution.Subscription{sub("my", "lamp", has("lamp.v1.0.0"))},
			change: func(r *Request) { r.Manual = map[string]bool{"my": true} },
			want: []string{
				"1 wave 1 plan 1 update lamp.v2.0.0 for my, manual over lamp.v1.0.0 (1.0.0)",
				"2 wave 2 plan 2 update lamp.v3.0.0 for my, manual over lamp.v2.0.0 (2.0.0)",
			},
		},
		"Newest": {
			reason: "what is the newest stays",
			subs:   []resolution.Subscription{sub("my", "lamp", has("lamp.v3.0.0"))},
			want:   []string{"newest my: lamp.v3.0.0 3.0.0 in stable"},
		},
		"UnderWay": {
			reason: "what is being installed is taken for done",
			subs:   []resolution.Subscription{sub("my", "lamp", has("lamp.v2.0.0"), frozen)},
			want: []string{
				"1 wave 1 plan 1 update lamp.v3.0.0 for my, automatic over lamp.v2.0.0 (2.0.0)",
				"under way my: lamp.v2.0.0",
			},
		},
		"UnderWayToTheNewest": {
			reason: "what is being installed is not there yet, were it the newest",
			subs:   []resolution.Subscription{sub("my", "lamp", has("lamp.v3.0.0"), frozen), sub("its", "battery", has("battery.v2.0.0"))},
			want:   []string{"newest its: battery.v2.0.0 2.0.0 in stable", "under way my: lamp.v3.0.0"},
		},
		"Stuck": {
			reason: "unless it has failed",
			subs:   []resolution.Subscription{sub("my", "lamp", has("lamp.v2.0.0"), frozen), sub("other", "battery")},
			change: func(r *Request) {
				r.Stuck = map[string]Refusal{"my": {Reason: "version lamp.v2.0.0 has failed", Remedy: "explain it"}}
			},
			want: []string{
				"1 wave 1 plan 1 install battery.v2.0.0 for other, automatic",
				`no my at "lamp.v2.0.0": version lamp.v2.0.0 has failed > explain it`,
			},
		},
	})
}

// TestRunNeeds uses versions that depend on others.
func TestRunNeeds(t *testing.T) {
	runAll(t, map[string]runCase{
		"Dependency": {
			reason: "what is needed comes first, in the same plan, with a Subscription of its own that is not taken beyond what is needed",
			subs:   []resolution.Subscription{sub("my", "radio")},
			want: []string{
				"1 wave 1 plan 1 install battery.v1.5.0 for battery-stable-shop-olm, automatic, generated",
				"2 wave 1 plan 1 install radio.v1.0.0 for my, automatic, needs battery.v1.5.0",
				"held back battery-stable-shop-olm at battery.v1.5.0",
			},
		},
		"DependencyOfManual": {
			reason: "what comes along waits for the same approval",
			subs:   []resolution.Subscription{sub("my", "radio")},
			change: func(r *Request) { r.Manual = map[string]bool{"my": true} },
			want: []string{
				"1 wave 1 plan 1 install battery.v1.5.0 for battery-stable-shop-olm, manual, generated",
				"2 wave 1 plan 1 install radio.v1.0.0 for my, manual, needs battery.v1.5.0",
				"held back battery-stable-shop-olm at battery.v1.5.0",
			},
		},
		"Lost": {
			reason: "what is installed gets back what it needs and has lost",
			subs:   []resolution.Subscription{sub("my", "radio", has("radio.v1.0.0"))},
			want: []string{
				"1 wave 1 plan 1 install battery.v1.5.0 for battery-stable-shop-olm, automatic, generated",
				"held back battery-stable-shop-olm at battery.v1.5.0",
				"newest my: radio.v1.0.0 1.0.0 in stable",
			},
		},
		"Together": {
			reason: "what needs what another Subscription brings waits for the same approval",
			subs:   []resolution.Subscription{sub("power", "battery"), sub("my", "radio"), sub("other", "lamp")},
			change: func(r *Request) { r.Manual = map[string]bool{"power": true} },
			want: []string{
				"1 wave 1 plan 1 install battery.v1.5.0 for power, manual",
				"2 wave 1 plan 1 install radio.v1.0.0 for my, manual, needs battery.v1.5.0",
				"3 wave 1 plan 2 install lamp.v3.0.0 for other, automatic",
				"held back power at battery.v1.5.0",
			},
		},
		"NeededFirst": {
			reason: "what is needed comes first, even of a younger Subscription",
			subs:   []resolution.Subscription{sub("my", "radio"), sub("other", "lamp"), sub("power", "battery")},
			want: []string{
				"1 wave 1 plan 1 install battery.v1.5.0 for power, automatic",
				"2 wave 1 plan 1 install radio.v1.0.0 for my, automatic, needs battery.v1.5.0",
				"3 wave 1 plan 2 install lamp.v3.0.0 for other, automatic",
				"held back power at battery.v1.5.0",
			},
		},
	})
}

// TestRunCopies predicts no version with the name of a copy: the supervisor refuses the whole plan.
func TestRunCopies(t *testing.T) {
	copied := func(name string) func(*Request) {
		return func(r *Request) { r.Copied = map[string]string{name: "far"} }
	}
	const remedy = "is a copy: the operator is installed in namespace far and also serves this namespace > remove it there, " +
		"remove this namespace from the targets of its OperatorGroup, or delete the Subscription here"
	runAll(t, map[string]runCase{
		"Install": {
			reason: "other plans continue",
			subs:   []resolution.Subscription{sub("my", "lamp"), sub("other", "battery")}, change: copied("lamp.v3.0.0"),
			want: []string{"1 wave 1 plan 1 install battery.v2.0.0 for other, automatic", `no my at "": ClusterServiceVersion home/lamp.v3.0.0 ` + remedy},
		},
		"Update": {
			reason: "earlier versions are installed",
			subs:   []resolution.Subscription{sub("my", "lamp", has("lamp.v1.0.0"))}, change: copied("lamp.v3.0.0"),
			want: []string{
				"1 wave 1 plan 1 update lamp.v2.0.0 for my, automatic over lamp.v1.0.0 (1.0.0)",
				"held back my at lamp.v2.0.0",
			},
		},
		"Newest": {
			reason: "without a version before, nothing is updated",
			subs:   []resolution.Subscription{sub("my", "lamp", has("lamp.v2.0.0"))}, change: copied("lamp.v3.0.0"),
			want: []string{`no my at "lamp.v2.0.0": ClusterServiceVersion home/lamp.v3.0.0 ` + remedy},
		},
		"First": {
			reason: "the first version is installed",
			subs:   []resolution.Subscription{sub("my", "lamp", func(s *resolution.Subscription) { s.StartingCSV = "lamp.v2.0.0" })}, change: copied("lamp.v3.0.0"),
			want: []string{"1 wave 1 plan 1 install lamp.v2.0.0 for my, automatic", "held back my at lamp.v2.0.0"},
		},
		"Dependency": {
			reason: "a plan is refused as a whole",
			subs:   []resolution.Subscription{sub("my", "radio")}, change: copied("battery.v1.5.0"),
			want: []string{`no my at "": ClusterServiceVersion home/battery.v1.5.0 ` + remedy},
		},
		"Other": {
			reason: "a copy of another version changes nothing",
			subs:   []resolution.Subscription{sub("my", "lamp")}, change: copied("lamp.v1.0.0"),
			want: []string{"1 wave 1 plan 1 install lamp.v3.0.0 for my, automatic"},
		},
	})
}

// TestRunDuplicates uses several Subscriptions of a package.
func TestRunDuplicates(t *testing.T) {
	runAll(t, map[string]runCase{
		"Shared": {
			reason: "the same request twice is one step",
			subs:   []resolution.Subscription{sub("a", "lamp"), sub("b", "lamp", channel("stable"))},
			want:   []string{"1 wave 1 plan 1 install lamp.v3.0.0 for a+b, automatic"},
		},
		"SharedManual": {
			reason: "one that wants to be asked is enough",
			subs:   []resolution.Subscription{sub("a", "lamp"), sub("b", "lamp")},
			change: func(r *Request) { r.Manual = map[string]bool{"b": true} },
			want:   []string{"1 wave 1 plan 1 install lamp.v3.0.0 for a+b, manual"},
		},
		"OtherRequest": {
			reason: "what another Subscription brings is not what was asked for",
			subs:   []resolution.Subscription{sub("a", "lamp"), sub("b", "lamp", func(s *resolution.Subscription) { s.StartingCSV = "lamp.v1.0.0" })},
			want: []string{
				"1 wave 1 plan 1 install lamp.v3.0.0 for a, automatic",
				`no b at "": constraints not satisfiable: there can be only one operator from package lamp, subscription a exists, subscription b exists > delete subscription b, or give it the same source, channel and startingCSV as subscription a`,
			},
		},
		"InstalledByOther": {
			reason: "what belongs to another Subscription is not what this one stays at",
			subs: []resolution.Subscription{sub("a", "lamp", has("lamp.v3.0.0")), sub("b", "lamp", channel("gone"), func(s *resolution.Subscription) {
				s.Installed = "lamp.v3.0.0"
			})},
			want: []string{
				`no b at "": constraints not satisfiable: no operators found in channel gone of package lamp in the catalog referenced by subscription b, subscription b exists > set spec.channel to one of stable`,
				"newest a: lamp.v3.0.0 3.0.0 in stable",
			},
		},
	})
}

// TestRunRefusals uses Subscriptions that get no version.
func TestRunRefusals(t *testing.T) {
	runAll(t, map[string]runCase{
		"Impossible": {
			reason: "one that cannot be had keeps nothing from the others",
			subs:   []resolution.Subscription{sub("bad", "lamp", channel("gone")), sub("my", "radio")},
			want: []string{
				"1 wave 1 plan 1 install battery.v1.5.0 for battery-stable-shop-olm, automatic, generated",
				"2 wave 1 plan 1 install radio.v1.0.0 for my, automatic, needs battery.v1.5.0",
				`no bad at "": constraints not satisfiable: no operators found in channel gone of package lamp in the catalog referenced by subscription bad, subscription bad exists > set spec.channel to one of stable`,
				"held back battery-stable-shop-olm at battery.v1.5.0",
			},
		},
		"Refused": {
			reason: "one that nothing is asked for is shown, and gets no second Subscription beside it",
			subs:   []resolution.Subscription{sub("my", "radio")},
			change: func(r *Request) {
				r.Refused = []Refused{{Subscription: "mine", Package: "battery", Err: &resolution.UnsatisfiableError{Reasons: []string{"it is open"}, Remedy: "say which"}}}
			},
			want: []string{
				"1 wave 1 plan 1 install battery.v1.5.0 for nobody (creates no Subscription: Subscription mine asks for the package already), automatic",
				"2 wave 1 plan 1 install radio.v1.0.0 for my, automatic, needs battery.v1.5.0",
				`no mine at "": constraints not satisfiable: it is open > say which`,
			},
		},
		"InVain": {
			reason: "one that asks for a package in vain keeps another from being made, and does not have what comes along",
			subs:   []resolution.Subscription{sub("bad", "battery", channel("gone")), sub("my", "radio")},
			want: []string{
				"1 wave 1 plan 1 install battery.v1.5.0 for nobody (creates no Subscription: Subscription bad asks for the package already), automatic",
				"2 wave 1 plan 1 install radio.v1.0.0 for my, automatic, needs battery.v1.5.0",
				`no bad at "": constraints not satisfiable: no operators found in channel gone of package battery in the catalog referenced by subscription bad, subscription bad exists > set spec.channel to one of stable`,
			},
		},
		"NameTaken": {
			reason: "and so does one that has the name",
			subs:   []resolution.Subscription{sub("battery-stable-shop-olm", "lamp"), sub("my", "radio")},
			want: []string{
				"1 wave 1 plan 1 install lamp.v3.0.0 for battery-stable-shop-olm, automatic",
				"2 wave 1 plan 2 install battery.v1.5.0 for nobody (creates no Subscription: the Subscription of package lamp has the name battery-stable-shop-olm), automatic",
				"3 wave 1 plan 2 install radio.v1.0.0 for my, automatic, needs battery.v1.5.0",
			},
		},
	})
}

// TestRunCatalogs uses catalogs with errors.
func TestRunCatalogs(t *testing.T) {
	runAll(t, map[string]runCase{
		"CatalogAway": {
			reason: "a catalog without content is told apart from a package that is not there",
			subs:   []resolution.Subscription{sub("my", "lamp"), sub("away", "fan", func(s *resolution.Subscription) { s.Catalog.Name = "dead" })},
			change: func(r *Request) {
				r.Input.Catalogs[resolution.CatalogKey{Namespace: "olm", Name: "dead"}] = resolution.Catalog{Err: errors.New("nothing answers")}
			},
			want: []string{
				"1 wave 1 plan 1 install lamp.v3.0.0 for my, automatic",
				`not known away at "": not known: catalog olm/dead cannot be read: nothing answers > fix the catalog, or give its content with --catalog olm/dead=SOURCE`,
			},
		},
		"CatalogAwayOfInstalled": {
			reason: "nothing is said of what is installed from a catalog that cannot be read, but that it is there",
			subs:   []resolution.Subscription{sub("my", "lamp", has("lamp.v3.0.0"))},
			change: func(r *Request) { r.Input.Catalogs[shop] = resolution.Catalog{Err: errors.New("nothing answers")} },
			want: []string{
				`not known my at "lamp.v3.0.0": not known: catalog olm/shop cannot be read: nothing answers > fix the catalog, or give its content with --catalog olm/shop=SOURCE`,
			},
		},
		"Malformed": {
			reason: "a catalog that could be read is not given again",
			subs:   []resolution.Subscription{sub("my", "crude")},
			want: []string{
				`no my at "": error using catalogsource olm/shop: package "crude", bundle "crude.v1.0.0": properties[1] of type "olm.package.required": decoding value: wrong type: it must be an object, found array > ask the publisher of the catalog to fix it`,
			},
		},
	})
}

func TestRunEnds(t *testing.T) {
	f, err := Run(t.Context(), request(t))
	if err != nil || len(f.Steps) != 0 || f.Fails() {
		t.Errorf("of nothing comes %+v, %v", f, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Run(ctx, request(t, sub("my", "lamp"))); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want that of the context", err)
	}
}

// TestRunSaysLoops uses a resolver that returns to a previous version, which a broken channel could cause,
// and one that never ends.
func TestRunSaysLoops(t *testing.T) {
	next := func(name func(wave int) string) func(context.Context, resolution.Input) resolution.Solution {
		wave := 0
		return func(_ context.Context, p resolution.Input) resolution.Solution {
			wave++
			out := resolution.Solution{}
			for _, s := range p.Subscriptions {
				if !s.InProgress {
					out[s.Name] = resolution.Outcome{Install: &resolution.Choice{Package: s.Package, Channel: "stable", Catalog: s.Catalog, Replaces: s.Installed, Bundle: name(wave)}}
				}
			}
			return out
		}
	}
	round := next(func(wave int) string { return []string{"lamp.v2.0.0", "lamp.v1.0.0"}[(wave-1)%2] })
	f, err := newSimulation(request(t, sub("my", "lamp", has("lamp.v1.0.0")))).run(t.Context(), round)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"1 wave 1 plan 1 update lamp.v2.0.0 for my, automatic over lamp.v1.0.0 (1.0.0)",
		`no my at "lamp.v2.0.0": channel stable of package lamp goes round in a circle: lamp.v1.0.0 -> lamp.v2.0.0 -> lamp.v1.0.0 > ask the publisher of the catalog to fix the channel`,
	}
	if diff := cmp.Diff(want, short(f)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	endless := next(func(wave int) string { return fmt.Sprintf("lamp.v%d", wave) })
	f, err = newSimulation(request(t, sub("my", "lamp"))).run(t.Context(), endless)
	if err != nil || len(f.Steps) != maxWaves || len(f.Notes) != 1 {
		t.Errorf("%d steps, notes %q, error %v", len(f.Steps), f.Notes, err)
	}
}

// TestRunTakesImages uses a version whose manifests are in an image.
func TestRunTakesImages(t *testing.T) {
	f, err := Run(t.Context(), request(t, sub("my", "mill")))
	if err != nil || len(f.Steps) != 1 || f.Fails() || f.Steps[0].Image == "" {
		t.Errorf("%+v, %v", f, err)
	}
}
