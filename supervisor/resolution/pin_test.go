package resolution

import (
	"errors"
	"strings"
	"testing"

	"github.com/chandlery/chandlery/bundles"
)

func pinned(name string) func(*Subscription) { return func(s *Subscription) { s.Pin = name } }

// TestResolvePinned checks which version a pin leads to from each installed version.
func TestResolvePinned(t *testing.T) {
	for _, tt := range []struct {
		reason string
		sub    Subscription
		bundle string // empty for none
		back   bool
		held   string // the version that could be installed instead
	}{
		{reason: "nothing is there", sub: want("lamp", pinned("lamp.v1.1.0")), bundle: "lamp.v1.1.0"},
		{reason: "nothing is there and it is to start elsewhere", sub: want("lamp", pinned("lamp.v1.1.0"), start("lamp.v1.0.0")), bundle: "lamp.v1.1.0"},
		{reason: "another version was there before", sub: want("lamp", pinned("lamp.v1.1.0"), func(s *Subscription) { s.LastInstalled = "lamp.v1.2.0" }), bundle: "lamp.v1.1.0"},
		{reason: "it is there", sub: want("lamp", pinned("lamp.v1.1.0"), has("lamp.v1.1.0")), held: "lamp.v1.3.0"},
		{reason: "it is there and the next one is the newest", sub: want("lamp", pinned("lamp.v1.2.0"), has("lamp.v1.2.0")), held: "lamp.v1.3.0"},
		{reason: "it is there and the newest", sub: want("lamp", channel("stable"), pinned("lamp.v1.3.0"), has("lamp.v1.3.0"))},
		{reason: "it is there and not in the catalog", sub: want("lamp", pinned("lamp.v0.1.0"), has("lamp.v0.1.0"))},
		{reason: "it is there and the catalog is away", sub: want("lamp", from(silent), pinned("lamp.v1.0.0"), has("lamp.v1.0.0"))},
		{reason: "the next version", sub: want("lamp", pinned("lamp.v1.1.0"), has("lamp.v1.0.0")), bundle: "lamp.v1.1.0"},
		{reason: "a version further on", sub: want("lamp", pinned("lamp.v1.3.0"), has("lamp.v1.0.0")), bundle: "lamp.v1.1.0"},
		{reason: "a version that a range leads to", sub: want("lamp", channel("beta"), pinned("lamp.v2.0.0"), has("lamp.v1.2.0")), bundle: "lamp.v2.0.0"},
		{reason: "a version that is skipped by now", sub: want("lamp", channel("skips"), pinned("lamp.v1.2.0"), has("lamp.v1.0.0")), bundle: "lamp.v1.2.0"},
		{reason: "an older version", sub: want("lamp", pinned("lamp.v1.1.0"), has("lamp.v1.3.0")), bundle: "lamp.v1.1.0", back: true},
		{reason: "an older version of another channel", sub: want("lamp", channel("stable"), pinned("lamp.v1.3.0"), has("lamp.v2.0.0")), bundle: "lamp.v1.3.0", back: true},
		{reason: "something is under way", sub: want("lamp", pinned("lamp.v1.1.0"), has("lamp.v1.3.0"), func(s *Subscription) { s.InProgress = true })},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			p := problem(tt.sub)
			for _, v := range []string{"1.0.0", "1.1.0", "1.2.0", "1.3.0", "2.0.0"} {
				if tt.sub.Installed == "lamp.v"+v {
					p.Operators = append(p.Operators, operator("lamp.v"+v, v, isPackage("lamp")))
				}
			}
			if len(p.Operators) == 0 && tt.sub.Installed != "" {
				p.Operators = append(p.Operators, operator(tt.sub.Installed, "0.1.0", isPackage("lamp")))
			}
			got := Resolve(t.Context(), p)[tt.sub.Name]
			if got.Err != nil {
				t.Fatal(got.Err)
			}
			choice := got.Install
			if tt.sub.InProgress {
				if choice != nil || got.Available == nil || !got.Available.Downgrade || got.Available.Bundle != tt.sub.Pin {
					t.Errorf("installs %+v, available %+v", choice, got.Available)
				}
				return
			}
			name, back := "", false
			if choice != nil {
				name, back = choice.Bundle, choice.Downgrade
			}
			if name != tt.bundle || back != tt.back {
				t.Errorf("installs %q, back %t, want %q, %t", name, back, tt.bundle, tt.back)
			}
			if choice != nil && tt.sub.Installed != "" && choice.Replaces != tt.sub.Installed {
				t.Errorf("replaces %s, want what is there", choice.Replaces)
			}
			held, _ := errors.AsType[*PinnedError](got.Constrained)
			if (held == nil) != (tt.held == "") || (held != nil && held.Available != tt.held) {
				t.Errorf("held: %v, want %q", got.Constrained, tt.held)
			}
		})
	}
}

// TestResolvePinRefused uses pins that cannot be followed. The installed version remains.
func TestResolvePinRefused(t *testing.T) {
	crate := property("olm.package.required", `{"packageName":"lamp","versionRange":">=1.2.0"}`)
	for _, tt := range []struct {
		reason    string
		subs      []Subscription
		operators []Operator
		want      []string
	}{
		{
			reason: "no such version", subs: []Subscription{want("lamp", pinned("lamp.v9"))},
			want: []string{"no operators found with name lamp.v9 in channel stable of package lamp in the catalog referenced by subscription my-lamp", "fix annotation chandlery.dev/pin"},
		},
		{
			reason: "a number in place of a name", subs: []Subscription{want("lamp", pinned("1.1.0"))},
			want: []string{"no operators found with name 1.1.0 in channel stable", "set annotation chandlery.dev/pin to the name of version 1.1.0 (lamp.v1.1.0)"},
		},
		{
			reason: "a number as tags have it, of another channel", subs: []Subscription{want("lamp", channel("stable"), pinned("v2.0.0"))},
			want: []string{"to the name of version v2.0.0 (lamp.v2.0.0)"},
		},
		{
			reason: "a number that no version has", subs: []Subscription{want("lamp", pinned("9.0.0"))},
			want: []string{"the package has no version of that name"},
		},
		{
			reason: "no such version while another is there", subs: []Subscription{want("lamp", pinned("lamp.v9"), has("lamp.v1.0.0"))},
			operators: []Operator{operator("lamp.v1.0.0", "1.0.0", isPackage("lamp"))},
			want:      []string{"no operators found with name lamp.v9"},
		},
		{
			reason: "a version of another channel", subs: []Subscription{want("lamp", channel("stable"), pinned("lamp.v2.0.0"))},
			want: []string{"no operators found with name lamp.v2.0.0 in channel stable", "set spec.channel to a channel that has it (beta)"},
		},
		{
			reason: "a newer version that no update leads to", subs: []Subscription{want("lamp", channel("beta"), pinned("lamp.v2.0.0"), has("lamp.v1.0.0"))},
			operators: []Operator{operator("lamp.v1.0.0", "1.0.0", isPackage("lamp"))},
			want:      []string{"channel beta of package lamp has no upgrade path from lamp.v1.0.0 to lamp.v2.0.0", "set spec.channel to a channel with an upgrade path"},
		},
		{
			reason: "an older version that another operator cannot do with", subs: []Subscription{want("lamp", pinned("lamp.v1.0.0"), has("lamp.v1.3.0"))},
			operators: []Operator{operator("lamp.v1.3.0", "1.3.0", isPackage("lamp")), operator("crate.v1.0.0", "1.0.0", isPackage("crate"), crate)},
			want:      []string{"clusterserviceversion crate.v1.0.0 requires an operator with package: lamp", "lacks a requirement of clusterserviceversion crate.v1.0.0"},
		},
		{
			reason: "two Subscriptions pin differently", subs: []Subscription{want("lamp", named("a"), pinned("lamp.v1.0.0")), want("lamp", named("my-lamp"), pinned("lamp.v1.1.0"))},
			want: []string{"there can be only one operator from package lamp", "annotation chandlery.dev/pin as subscription a"},
		},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			p := problem(tt.subs...)
			p.Operators = tt.operators
			got := Resolve(t.Context(), p)["my-lamp"]
			if got.Install != nil || got.Err == nil {
				t.Fatalf("installs %+v, error %v", got.Install, got.Err)
			}
			if _, ok := errors.AsType[*UnsatisfiableError](got.Err); !ok {
				t.Errorf("error is %T", got.Err)
			}
			for _, text := range tt.want {
				if !strings.Contains(got.Err.Error(), text) {
					t.Errorf("error\n%v\ndoes not contain\n%s", got.Err, text)
				}
			}
		})
	}
}

// TestResolvePinnedStepByStep follows the updates from the first version to the pinned one, and no further.
func TestResolvePinnedStepByStep(t *testing.T) {
	var visited []string
	for at := "1.0.0"; len(visited) < 5; {
		visited = append(visited, at)
		p := problem(want("lamp", pinned("lamp.v1.2.0"), has("lamp.v"+at)))
		p.Operators = []Operator{operator("lamp.v"+at, at, isPackage("lamp"))}
		got := Resolve(t.Context(), p)["my-lamp"]
		if got.Err != nil {
			t.Fatal(got.Err)
		}
		if got.Install == nil {
			break
		}
		at = strings.TrimPrefix(got.Install.Bundle, "lamp.v")
	}
	if got := strings.Join(visited, " "); got != "1.0.0 1.1.0 1.2.0" {
		t.Errorf("went through %s", got)
	}
}

// TestResolvePinnedAroundSkipped passes skipped versions, of which the pinned one may be one.
func TestResolvePinnedAroundSkipped(t *testing.T) {
	pkg := &bundles.Package{
		Name: "reel", DefaultChannel: "stable",
		Channels: []*bundles.Channel{{Name: "stable", Package: "reel", Entries: []bundles.Entry{
			{Name: "reel.v1.0.0"},
			{Name: "reel.v1.1.0", Replaces: "reel.v1.0.0"},
			{Name: "reel.v1.2.0", Replaces: "reel.v1.1.0", Skips: []string{"reel.v1.1.0"}, SkipRange: "<1.2.0"},
			{Name: "reel.v1.3.0", Replaces: "reel.v1.2.0"},
		}}},
		Bundles: []*bundles.Bundle{bundle("reel", "1.0.0"), bundle("reel", "1.1.0"), bundle("reel", "1.2.0"), bundle("reel", "1.3.0")},
	}
	for _, tt := range []struct{ installed, pin, want string }{
		{"1.0.0", "1.3.0", "reel.v1.2.0"},
		{"1.0.0", "1.1.0", "reel.v1.1.0"},
		{"1.3.0", "1.1.0", "reel.v1.1.0 back"},
		{"1.1.0", "1.3.0", "reel.v1.2.0"},
	} {
		p := Input{
			Namespace: "home", Catalogs: map[CatalogKey]Catalog{shop: {Content: offering(pkg)}},
			Subscriptions: []Subscription{want("reel", has("reel.v"+tt.installed), pinned("reel.v"+tt.pin))},
			Operators:     []Operator{operator("reel.v"+tt.installed, tt.installed, isPackage("reel"))},
		}
		outcome := Resolve(t.Context(), p)["my-reel"]
		got := ""
		if outcome.Install != nil {
			got = outcome.Install.Bundle
		}
		if outcome.Install != nil && outcome.Install.Downgrade {
			got += " back"
		}
		if got != tt.want {
			t.Errorf("from %s to %s: %q, error %v, want %q", tt.installed, tt.pin, got, outcome.Err, tt.want)
		}
	}
}
