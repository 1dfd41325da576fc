package resolution

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chandlery/chandlery/bundles"
)

func provides(kind string) bundles.Property {
	return property("olm.gvk", fmt.Sprintf(`{"group":"g.example","version":"v1","kind":%q}`, kind))
}

func needsAPI(kind string) bundles.Property {
	return property("olm.gvk.required", fmt.Sprintf(`{"group":"g.example","version":"v1","kind":%q}`, kind))
}

func needsPackage(name, versions string) bundles.Property {
	return property("olm.package.required", fmt.Sprintf(`{"packageName":%q,"versionRange":%q}`, name, versions))
}

func isPackage(name string) bundles.Property {
	return property("olm.package", fmt.Sprintf(`{"packageName":%q,"version":"1.0.0"}`, name))
}

// chain returns a package whose versions 1.0.0, 2.0.0, … replace each other; each has its own properties.
func chain(name string, versions ...[]bundles.Property) *bundles.Package {
	pkg := &bundles.Package{Name: name, DefaultChannel: "stable", Channels: []*bundles.Channel{{Name: "stable", Package: name}}}
	for i, properties := range versions {
		version := fmt.Sprintf("%d.0.0", i+1)
		e := bundles.Entry{Name: name + ".v" + version}
		if i > 0 {
			e.Replaces = fmt.Sprintf("%s.v%d.0.0", name, i)
		}
		pkg.Channels[0].Entries = append(pkg.Channels[0].Entries, e)
		pkg.Bundles = append(pkg.Bundles, bundle(name, version, properties...))
	}
	return pkg
}

func properties(list ...bundles.Property) []bundles.Property { return list }

// brief returns a solution in few words.
func brief(s Solution) map[string]string {
	out := map[string]string{}
	for name, o := range s {
		var words []string
		if o.Install != nil {
			words = append(words, o.Install.Bundle)
		}
		for _, c := range o.Dependencies {
			words = append(words, "+"+c.Bundle)
		}
		if len(o.CoInstalled) > 0 {
			words = append(words, "with "+strings.Join(o.CoInstalled, ", "))
		}
		if o.Available != nil {
			words = append(words, "available "+o.Available.Bundle)
		}
		if o.Constrained != nil {
			words = append(words, "held")
		}
		switch {
		case errors.Is(o.Err, ErrPending):
			words = append(words, "pending")
		case o.Err != nil:
			words = append(words, "failed")
		}
		out[name] = strings.Join(words, " ")
	}
	return out
}

// gathering is a problem in which Subscriptions depend on each other.
type gathering struct {
	reason    string
	packages  []*bundles.Package
	market    []*bundles.Package
	pending   bool
	subs      []Subscription
	operators []Operator
	want      map[string]string
}

func (tt gathering) resolve(t *testing.T) {
	p := Input{Namespace: "home", Subscriptions: tt.subs, Operators: tt.operators, Catalogs: map[CatalogKey]Catalog{shop: {Content: offering(tt.packages...)}}}
	if tt.market != nil {
		p.Catalogs[market] = Catalog{Content: offering(tt.market...)}
	}
	if tt.pending {
		p.Catalogs[CatalogKey{Namespace: "olm", Name: "new"}] = Catalog{Pending: true}
	}
	solution := Resolve(t.Context(), p)
	if diff := cmp.Diff(tt.want, brief(solution)); diff != "" {
		t.Errorf("solution (-want +got):\n%s", diff)
		for name, o := range solution {
			t.Logf("%s: %v; held: %v", name, o.Err, o.Constrained)
		}
	}
}

func resolveAll(t *testing.T, gatherings []gathering) {
	t.Helper()
	for _, tt := range gatherings {
		t.Run(tt.reason, tt.resolve)
	}
}

func presentLamp() Operator {
	return operator("lamp.v1.0.0", "1.0.0", isPackage("lamp"), provides("Lamp"))
}

// TestResolveDependencies checks the dependencies of a version.
func TestResolveDependencies(t *testing.T) {
	resolveAll(t, []gathering{
		{
			reason:   "a dependency is added, and its dependency before it",
			packages: []*bundles.Package{chain("a", properties(needsAPI("B"))), chain("b", properties(provides("B"), needsPackage("c", ">=1.0.0"))), chain("c", nil, nil)},
			subs:     []Subscription{want("a")},
			want:     map[string]string{"my-a": "a.v1.0.0 +c.v2.0.0 +b.v1.0.0"},
		},
		{
			reason:   "a dependency of another Subscription is not added",
			packages: []*bundles.Package{chain("a", properties(needsAPI("B"))), chain("b", properties(provides("B")))},
			subs:     []Subscription{want("a"), want("b")},
			want:     map[string]string{"my-a": "a.v1.0.0 with my-b", "my-b": "b.v1.0.0"},
		},
		{
			reason:    "a present operator is not added",
			packages:  []*bundles.Package{chain("a", properties(needsAPI("Lamp"))), chain("lamp", properties(provides("Lamp")))},
			subs:      []Subscription{want("a")},
			operators: []Operator{presentLamp()},
			want:      map[string]string{"my-a": "a.v1.0.0"},
		},
		{
			reason:   "an older version when the newest cannot have what it needs",
			packages: []*bundles.Package{chain("a", nil, properties(needsAPI("Nothing")))},
			subs:     []Subscription{want("a")},
			want:     map[string]string{"my-a": "a.v1.0.0 held"},
		},
		{
			reason:   "an older version when the newest says what cannot be read",
			packages: []*bundles.Package{chain("a", nil, properties(property("olm.gvk.required", "7")))},
			subs:     []Subscription{want("a")},
			want:     map[string]string{"my-a": "a.v1.0.0 held"},
		},
		{
			reason:   "two Subscriptions for two providers of the same API agree on one",
			packages: []*bundles.Package{chain("a", properties(needsAPI("X"))), chain("x", properties(provides("X")))},
			market:   []*bundles.Package{chain("b", properties(needsAPI("X"))), chain("z", properties(provides("X")))},
			subs:     []Subscription{want("a"), want("b", from(market))},
			want:     map[string]string{"my-a": "a.v1.0.0 +x.v1.0.0", "my-b": "b.v1.0.0 +x.v1.0.0"},
		},
		{
			reason:   "several operators may meet a constraint together",
			packages: []*bundles.Package{chain("a", properties(property("olm.constraint", `{"failureMessage":"both","all":{"constraints":[{"gvk":{"group":"g.example","version":"v1","kind":"X"}},{"package":{"packageName":"y","versionRange":">=1.0.0"}}]}}`))), chain("x", properties(provides("X"))), chain("y", nil)},
			subs:     []Subscription{want("a")},
			want:     map[string]string{"my-a": "a.v1.0.0 +x.v1.0.0 +y.v1.0.0"},
		},
	})
}

// TestResolveExclusion uses versions that exclude each other.
func TestResolveExclusion(t *testing.T) {
	resolveAll(t, []gathering{
		{
			reason:   "two that exclude each other: the first one is installed",
			packages: []*bundles.Package{chain("a", properties(provides("X"))), chain("b", properties(provides("X")))},
			subs:     []Subscription{want("a"), want("b")},
			want:     map[string]string{"my-a": "a.v1.0.0", "my-b": "failed"},
		},
		{
			reason:   "whichever it is",
			packages: []*bundles.Package{chain("a", properties(provides("X"))), chain("b", properties(provides("X")))},
			subs:     []Subscription{want("b"), want("a")},
			want:     map[string]string{"my-a": "failed", "my-b": "b.v1.0.0"},
		},
		{
			reason:   "a version that both can live with",
			packages: []*bundles.Package{chain("lamp", nil, nil), chain("crate", properties(needsPackage("lamp", "<2.0.0")))},
			subs:     []Subscription{want("lamp"), want("crate")},
			want:     map[string]string{"my-lamp": "lamp.v1.0.0 held", "my-crate": "crate.v1.0.0 with my-lamp"},
		},
		{
			reason:    "an operator without a Subscription is in the way",
			packages:  []*bundles.Package{chain("other", properties(provides("Lamp")))},
			subs:      []Subscription{want("other")},
			operators: []Operator{presentLamp()},
			want:      map[string]string{"my-other": "failed"},
		},
		{
			reason:   "a user's Subscription comes before one made for a dependency",
			packages: []*bundles.Package{{Name: "lamp", DefaultChannel: "stable", Channels: []*bundles.Channel{{Name: "beta", Package: "lamp", Entries: []bundles.Entry{{Name: "lamp.v2.0.0"}}}, {Name: "stable", Package: "lamp", Entries: []bundles.Entry{{Name: "lamp.v1.0.0"}}}}, Bundles: []*bundles.Bundle{bundle("lamp", "1.0.0"), bundle("lamp", "2.0.0")}}},
			subs:     []Subscription{want("lamp", named("made"), func(s *Subscription) { s.Generated = true }), want("lamp", named("mine"), channel("beta"))},
			want:     map[string]string{"made": "failed", "mine": "lamp.v2.0.0"},
		},
	})
}

// TestResolveUpdates checks updates of operators that others depend on.
func TestResolveUpdates(t *testing.T) {
	resolveAll(t, []gathering{
		{
			reason:    "an update that would take away what another version needs waits",
			packages:  []*bundles.Package{chain("lamp", nil, nil), chain("crate", nil)},
			subs:      []Subscription{want("lamp", has("lamp.v1.0.0"))},
			operators: []Operator{presentLamp(), operator("crate.v1.0.0", "1.0.0", isPackage("crate"), needsPackage("lamp", "<2.0.0"))},
			want:      map[string]string{"my-lamp": "held"},
		},
		{
			reason:    "it goes on together with one that no longer needs it",
			packages:  []*bundles.Package{chain("lamp", nil, nil), chain("crate", nil, properties(needsPackage("lamp", ">=2.0.0")))},
			subs:      []Subscription{want("lamp", has("lamp.v1.0.0")), want("crate", has("crate.v1.0.0"))},
			operators: []Operator{presentLamp(), operator("crate.v1.0.0", "1.0.0", isPackage("crate"), needsPackage("lamp", "<2.0.0"))},
			want:      map[string]string{"my-lamp": "lamp.v2.0.0", "my-crate": "crate.v2.0.0 with my-lamp"},
		},
		{
			reason:    "an update clears the way for another operator",
			packages:  []*bundles.Package{chain("lamp", properties(provides("Lamp")), nil), chain("other", properties(provides("Lamp")))},
			subs:      []Subscription{want("other"), want("lamp", has("lamp.v1.0.0"))},
			operators: []Operator{presentLamp()},
			want:      map[string]string{"my-lamp": "lamp.v2.0.0", "my-other": "other.v1.0.0"},
		},
		{
			reason:    "an operator that is present is updated to what another one needs",
			packages:  []*bundles.Package{chain("lamp", nil, nil), chain("crate", properties(needsPackage("lamp", ">=2.0.0")))},
			subs:      []Subscription{want("crate"), want("lamp", has("lamp.v1.0.0"))},
			operators: []Operator{presentLamp()},
			want:      map[string]string{"my-lamp": "lamp.v2.0.0", "my-crate": "crate.v1.0.0 with my-lamp"},
		},
		{
			reason:    "it is not while something is under way for it",
			packages:  []*bundles.Package{chain("lamp", nil, nil), chain("crate", properties(needsPackage("lamp", ">=2.0.0")))},
			subs:      []Subscription{want("crate"), want("lamp", has("lamp.v1.0.0"), func(s *Subscription) { s.InProgress = true })},
			operators: []Operator{presentLamp()},
			want:      map[string]string{"my-lamp": "available lamp.v2.0.0", "my-crate": "failed"},
		},
		{
			reason:    "operators that are present already are no contradiction",
			packages:  []*bundles.Package{chain("a", nil)},
			subs:      []Subscription{want("a")},
			operators: []Operator{presentLamp(), operator("copy.v1", "1.0.0", isPackage("copy"), provides("Lamp"))},
			want:      map[string]string{"my-a": "a.v1.0.0"},
		},
		{
			reason: "a range does not lead back down the chain",
			packages: []*bundles.Package{{Name: "lamp", DefaultChannel: "stable", Channels: []*bundles.Channel{{Name: "stable", Package: "lamp", Entries: []bundles.Entry{
				{Name: "lamp.v2.0.0", Replaces: "lamp.v1.0.0"}, {Name: "lamp.v1.0.0", SkipRange: ">=0.1.0"},
			}}}, Bundles: []*bundles.Bundle{bundle("lamp", "1.0.0"), bundle("lamp", "2.0.0")}}},
			subs:      []Subscription{want("lamp", has("lamp.v2.0.0"))},
			operators: []Operator{operator("lamp.v2.0.0", "2.0.0", isPackage("lamp"))},
			want:      map[string]string{"my-lamp": ""},
		},
		{
			reason:   "something under way",
			packages: []*bundles.Package{chain("lamp", nil, nil)},
			subs:     []Subscription{want("lamp", has("lamp.v1.0.0"), func(s *Subscription) { s.InProgress = true })}, operators: []Operator{presentLamp()},
			want: map[string]string{"my-lamp": "available lamp.v2.0.0"},
		},
	})
}

// TestResolveLoss uses lost dependencies, and dependencies that are not known yet.
func TestResolveLoss(t *testing.T) {
	resolveAll(t, []gathering{
		{
			reason:    "what an operator needs comes back when somebody has removed it",
			packages:  []*bundles.Package{chain("crate", nil), chain("lamp", nil, properties(provides("Lamp"), needsPackage("oil", ">=1.0.0"))), chain("oil", nil)},
			subs:      []Subscription{want("crate", has("crate.v1.0.0"))},
			operators: []Operator{operator("crate.v1.0.0", "1.0.0", isPackage("crate"), needsAPI("Lamp"))},
			want:      map[string]string{"my-crate": "+oil.v1.0.0 +lamp.v2.0.0"},
		},
		{
			reason:    "not where somebody else brings it anyway",
			packages:  []*bundles.Package{chain("crate", nil), chain("lamp", properties(provides("Lamp"))), chain("torch", properties(provides("Lamp")))},
			subs:      []Subscription{want("crate", has("crate.v1.0.0")), want("torch")},
			operators: []Operator{operator("crate.v1.0.0", "1.0.0", isPackage("crate"), needsAPI("Lamp"))},
			want:      map[string]string{"my-crate": "", "my-torch": "torch.v1.0.0"},
		},
		{
			reason:    "where nothing provides it, nothing is done",
			packages:  []*bundles.Package{chain("crate", nil)},
			subs:      []Subscription{want("crate", has("crate.v1.0.0"))},
			operators: []Operator{operator("crate.v1.0.0", "1.0.0", isPackage("crate"), needsAPI("Lamp"))},
			want:      map[string]string{"my-crate": ""},
		},
		{
			reason:    "two that lack the same thing get it once",
			packages:  []*bundles.Package{chain("a", nil), chain("b", nil), chain("lamp", properties(provides("Lamp"))), chain("torch", properties(provides("Lamp")))},
			subs:      []Subscription{want("a", has("a.v1.0.0")), want("b", has("b.v1.0.0"))},
			operators: []Operator{operator("a.v1.0.0", "1.0.0", isPackage("a"), needsAPI("Lamp")), operator("b.v1.0.0", "1.0.0", isPackage("b"), needsAPI("Lamp"), needsPackage("torch", ">=1.0.0"))},
			want:      map[string]string{"my-a": "+lamp.v1.0.0", "my-b": ""},
		},
		{
			reason:   "a catalog that is being read may have a better provider than what is left",
			packages: []*bundles.Package{chain("a", properties(needsAPI("X"))), chain("x", properties(provides("X"), property("olm.deprecated", "{}")))}, pending: true,
			market: []*bundles.Package{chain("y", properties(provides("X")))},
			subs:   []Subscription{want("a")},
			want:   map[string]string{"my-a": "a.v1.0.0 +y.v1.0.0"},
		},
		{
			reason:   "a catalog that is being read may have what is needed",
			packages: []*bundles.Package{chain("a", properties(needsAPI("X")))}, pending: true,
			subs: []Subscription{want("a")},
			want: map[string]string{"my-a": "pending"},
		},
		{
			reason:   "it does not matter to what its own catalog has",
			packages: []*bundles.Package{chain("a", properties(needsAPI("X"))), chain("x", properties(provides("X")))}, pending: true,
			subs: []Subscription{want("a")},
			want: map[string]string{"my-a": "a.v1.0.0 +x.v1.0.0"},
		},
	})
}

func TestCache(t *testing.T) {
	var cache Cache
	p := problem(want("lamp"), want("api"))
	first, cached := cache.Resolve(t.Context(), p)
	if cached {
		t.Error("a first problem comes from the cache")
	}
	same := p
	same.Subscriptions = append([]Subscription(nil), p.Subscriptions...)
	if again, cached := cache.Resolve(t.Context(), same); !cached || again["my-lamp"].Install != first["my-lamp"].Install {
		t.Error("an unchanged problem was resolved again")
	}
	for _, tt := range []struct {
		reason string
		change func(*Input)
	}{
		{reason: "subscription", change: func(p *Input) { p.Subscriptions[0].Channel = "beta" }},
		{reason: "operator", change: func(p *Input) { p.Operators = []Operator{operator("x", "1.0.0")} }},
		{reason: "content", change: func(p *Input) { p.Catalogs = map[CatalogKey]Catalog{shop: {Content: offering(lamp())}} }},
		{reason: "priority", change: func(p *Input) {
			p.Catalogs = map[CatalogKey]Catalog{shop: {Content: p.Catalogs[shop].Content, Priority: 1}, market: p.Catalogs[market], silent: p.Catalogs[silent]}
		}},
		{reason: "error", change: func(p *Input) {
			p.Catalogs = map[CatalogKey]Catalog{shop: p.Catalogs[shop], market: p.Catalogs[market], silent: {Err: errors.New("another")}}
		}},
	} {
		cache.Resolve(t.Context(), p)
		before, _ := cache.Resolve(t.Context(), p)
		changed := p
		changed.Subscriptions = append([]Subscription(nil), p.Subscriptions...)
		tt.change(&changed)
		if after, cached := cache.Resolve(t.Context(), changed); cached || after["my-lamp"].Install == before["my-lamp"].Install {
			t.Errorf("%s: a changed problem was not resolved again", tt.reason)
		}
	}
	cache.Resolve(t.Context(), p)
	before, _ := cache.Resolve(t.Context(), p)
	cache.Forget("home")
	if after, cached := cache.Resolve(t.Context(), p); cached || after["my-lamp"].Install == before["my-lamp"].Install {
		t.Error("a forgotten problem was remembered")
	}
}

func TestResolveContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var cache Cache
	if got, _ := cache.Resolve(ctx, problem(want("lamp"))); !errors.Is(got["my-lamp"].Err, context.Canceled) {
		t.Errorf("error %v", got["my-lamp"].Err)
	}
	if again, cached := cache.Resolve(t.Context(), problem(want("lamp"))); cached || again["my-lamp"].Err != nil {
		t.Errorf("what was cut short is remembered: %v", again["my-lamp"].Err)
	}
}

// TestResolveStepLimit uses a problem that no solver can decide in time. A number of operators each
// need a different one of a smaller number of others, so they cannot all be installed.
func TestResolveStepLimit(t *testing.T) {
	const holes = 14
	var packages []*bundles.Package
	for i := range holes {
		var versions [][]bundles.Property
		for j := range holes + 1 {
			versions = append(versions, properties(property("olm.label", fmt.Sprintf(`{"label":"pigeon %d"}`, j))))
		}
		packages = append(packages, chain(fmt.Sprintf("hole-%02d", i), versions...))
	}
	var subs []Subscription
	for j := range holes + 1 {
		name := fmt.Sprintf("pigeon-%02d", j)
		packages = append(packages, chain(name, properties(property("olm.label.required", fmt.Sprintf(`{"label":"pigeon %d"}`, j)))))
		subs = append(subs, want(name))
	}
	packages = append(packages, chain("lamp", nil))
	p := Input{Namespace: "home", Subscriptions: append(subs, want("lamp")), Catalogs: map[CatalogKey]Catalog{shop: {Content: offering(packages...)}}}
	const steps = 500
	failed := 0
	solution := resolve(t.Context(), &p, steps)
	for name, o := range solution {
		if o.Err == nil {
			continue
		}
		failed++
		if text := o.Err.Error(); !strings.Contains(text, "given up") || !strings.Contains(text, "to narrow the choice") {
			t.Errorf("%s: %s", name, text)
		}
	}
	if failed != 1 {
		t.Errorf("%d Subscriptions have no answer, want only the last one", failed)
	}
	if o := solution["my-lamp"]; o.Err != nil || o.Install == nil {
		t.Errorf("another Subscription: %v", o.Err)
	}
}
