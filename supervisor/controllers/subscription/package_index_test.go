package subscription

import (
	"slices"
	"strings"
	"testing"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/catalogs"
	"github.com/chandlery/chandlery/supervisor/plansteps"
	"github.com/chandlery/chandlery/supervisor/resolution"
)

// from records the catalog of a version.
func from(namespace, name string) func(*operatorsv1alpha1.ClusterServiceVersion) {
	return func(csv *operatorsv1alpha1.ClusterServiceVersion) {
		csv.Labels = api.CatalogLabels(types.NamespacedName{Namespace: namespace, Name: name})
	}
}

func TestPackageIndex(t *testing.T) {
	type (
		subs     = []*operatorsv1alpha1.Subscription
		versions = []*operatorsv1alpha1.ClusterServiceVersion
	)
	beta := func(sub *operatorsv1alpha1.Subscription) { sub.Spec.Channel = "beta" }
	gone := func(sub *operatorsv1alpha1.Subscription) { sub.Spec.CatalogSource = "gone" }
	lamp := subscription("my", "lamp")
	state := read(t)
	for _, tt := range []struct {
		reason string
		subs   subs
		csvs   versions
		want   map[string]string // packages by version
		open   []string
	}{
		{reason: "by its own record", subs: subs{subscription("my", "fan")}, csvs: versions{version("lamp.v1", "lamp", succeeded)}, want: map[string]string{"lamp.v1": "lamp"}},
		{reason: "by the status of a Subscription", subs: subs{subscription("my", "fan", knows("x.v1", "x.v1"))}, csvs: versions{version("x.v1", "", succeeded)}, want: map[string]string{"x.v1": "fan"}},
		{reason: "by where it came from", subs: subs{lamp}, csvs: versions{version("lamp.v1", "", succeeded, from("olm", "shop"))}, want: map[string]string{"lamp.v1": "lamp"}},
		{reason: "by the only wish that it can have come from", subs: subs{lamp, subscription("other", "fan")}, csvs: versions{version("lamp.v1", "", succeeded)}, want: map[string]string{"lamp.v1": "lamp"}},
		{reason: "two with the same wish are one", subs: subs{lamp, subscription("same", "lamp", beta)}, csvs: versions{version("lamp.v1", "", succeeded)}, want: map[string]string{"lamp.v1": "lamp"}},
		{reason: "an update under way", subs: subs{lamp}, csvs: versions{version("lamp.v1", "", replacing), version("lamp.v2", "", pending, replaces("lamp.v1"))}, want: map[string]string{"lamp.v1": "lamp", "lamp.v2": "lamp"}},
		{reason: "what a known one replaces", subs: subs{lamp}, csvs: versions{version("lamp.v1", "", replacing), version("lamp.v2", "lamp", succeeded, replaces("lamp.v1"))}, want: map[string]string{"lamp.v1": "lamp", "lamp.v2": "lamp"}},
		{reason: "another catalog's is not", subs: subs{subscription("my", "lamp", gone)}, csvs: versions{version("lamp.v1", "", succeeded)}},
		{reason: "a version that no catalog knows", subs: subs{lamp}, csvs: versions{version("lamp.v7", "", succeeded)}},
		{reason: "two that stand beside each other", subs: subs{lamp}, csvs: versions{version("lamp.v1", "", succeeded), version("lamp.v2", "", succeeded)}, open: []string{"my"}},
		{reason: "one beside a known one", subs: subs{lamp}, csvs: versions{version("lamp.v1", "", succeeded), version("lamp.v2", "lamp", succeeded)}, want: map[string]string{"lamp.v2": "lamp"}, open: []string{"my"}},
		{reason: "an annotation that cannot be read", subs: subs{lamp}, csvs: versions{version("lamp.v1", "", succeeded, func(csv *operatorsv1alpha1.ClusterServiceVersion) {
			csv.Annotations = map[string]string{api.AnnotationProperties: "{"}
		})}, want: map[string]string{"lamp.v1": "lamp"}},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			got := newPackageIndex(observed(state, tt.subs...).with(tt.csvs))
			for _, csv := range tt.csvs {
				if got.packages[csv.Name] != tt.want[csv.Name] {
					t.Errorf("%s belongs to %q, want %q", csv.Name, got.packages[csv.Name], tt.want[csv.Name])
				}
			}
			for _, sub := range tt.subs {
				if (got.ambiguous[sub.Name] != nil) != slices.Contains(tt.open, sub.Name) {
					t.Errorf("%s: open %+v", sub.Name, got.ambiguous[sub.Name])
				}
			}
		})
	}
}

// TestAmbiguousVersions checks the message of a Subscription about versions that it cannot adopt. A
// Subscription with an operator has no such message.
func TestAmbiguousVersions(t *testing.T) {
	one, two := version("lamp.v1", "", succeeded), version("lamp.v2", "", succeeded)
	d := decided(t, observed(read(t), subscription("my", "lamp")).with([]*operatorsv1alpha1.ClusterServiceVersion{two, one}))[0]
	const want = "constraints not satisfiable: clusterserviceversion lamp.v1 exists and is not referenced by a subscription, " +
		"clusterserviceversion lamp.v2 exists and is not referenced by a subscription, subscription my exists; " +
		"there can be only one operator from package lamp; delete the unused clusterserviceversions among lamp.v1, lamp.v2; the supervisor then adopts the remaining one"
	if d.err == nil || d.err.Error() != want || d.install != nil {
		t.Errorf("installs %+v, error %v", d.install, d.err)
	}
	known := version("lamp.v2", "lamp", succeeded)
	d = decided(t, observed(read(t), subscription("my", "lamp")).with([]*operatorsv1alpha1.ClusterServiceVersion{known, one}))[0]
	if d.err != nil || d.present.current != known {
		t.Errorf("present %+v, error %v", d.present, d.err)
	}
}

func TestAdopts(t *testing.T) {
	sub := subscription("my", "lamp")
	complete := operatorsv1alpha1.InstallPlanPhaseComplete
	made := subscription("my", "lamp", func(sub *operatorsv1alpha1.Subscription) {
		sub.Annotations = map[string]string{api.AnnotationGeneratedBy: "p"}
	})
	v2 := version("lamp.v2", "lamp", succeeded)
	for _, tt := range []struct {
		reason string
		sub    *operatorsv1alpha1.Subscription
		csv    *operatorsv1alpha1.ClusterServiceVersion
		plans  []*operatorsv1alpha1.InstallPlan
		want   bool
	}{
		{reason: "the Subscription is new", sub: sub, csv: v2, want: true},
		{reason: "the status was lost", sub: sub, csv: v2, plans: []*operatorsv1alpha1.InstallPlan{installPlan("p", "lamp.v2", complete, 1, sub)}, want: true},
		{reason: "it is known", sub: subscription("my", "lamp", knows("lamp.v2", "lamp.v2")), csv: v2},
		{reason: "it is being installed for it", sub: sub, csv: v2, plans: []*operatorsv1alpha1.InstallPlan{installPlan("p", "lamp.v2", "Installing", 1, sub)}},
		{reason: "it was installed along", sub: made, csv: v2, plans: []*operatorsv1alpha1.InstallPlan{installPlan("p", "lamp.v2", complete, 1)}},
		{reason: "nothing is there", sub: sub, csv: version("fan.v1", "fan", succeeded)},
	} {
		o := observed(read(t), tt.sub).with([]*operatorsv1alpha1.ClusterServiceVersion{tt.csv}, tt.plans...)
		if got := decided(t, o)[0].adopts; got != tt.want {
			t.Errorf("%s: %v", tt.reason, got)
		}
	}
}

func TestReadProperties(t *testing.T) {
	annotated := func(text string) *operatorsv1alpha1.ClusterServiceVersion {
		csv := version("lamp.v1", "", succeeded)
		csv.Annotations = map[string]string{api.AnnotationProperties: text}
		csv.Spec.CustomResourceDefinitions.Owned = []operatorsv1alpha1.CRDDescription{{Name: "lamps.home.example", Version: "v1", Kind: "Lamp"}, {Name: "x"}}
		csv.Spec.APIServiceDefinitions.Owned = []operatorsv1alpha1.APIServiceDescription{{Group: "live.example", Version: "v1", Kind: "Light"}}
		return csv
	}
	for _, tt := range []struct {
		reason, text string
		pkg          string
		gvks         string
		requires     int
	}{
		{reason: "no record: by what it owns", gvks: "home.example/v1, Kind=Lamp live.example/v1, Kind=Light"},
		{reason: "a record that is no JSON", text: "{", gvks: "home.example/v1, Kind=Lamp live.example/v1, Kind=Light"},
		{reason: "the record counts", text: `{"properties":[{"type":"olm.package","value":{"packageName":"lamp","version":"1.0.0"}},{"type":"olm.gvk","value":{"group":"g","version":"v1","kind":"K"}},{"type":"olm.gvk.required","value":{"group":"g","version":"v1","kind":"N"}}]}`, pkg: "lamp", gvks: "g/v1, Kind=K", requires: 1},
		{reason: "one property that cannot be read spoils no other", text: `{"properties":[{"type":"olm.gvk","value":7},{"type":"olm.package","value":{"packageName":"lamp","version":"1.0.0"}}]}`, pkg: "lamp"},
	} {
		got := (&propertyCache{}).read(annotated(tt.text))
		var gvks []string
		for _, gvk := range got.subject.GVKs {
			gvks = append(gvks, gvk.String())
		}
		if got.subject.Package != tt.pkg || strings.Join(gvks, " ") != tt.gvks || len(got.requires) != tt.requires {
			t.Errorf("%s: package %q, APIs %v, %d requirements", tt.reason, got.subject.Package, gvks, len(got.requires))
		}
	}
}

// TestPropertyCache checks that the properties of a version are read again when it changes, and dropped with
// it.
func TestPropertyCache(t *testing.T) {
	l := &propertyCache{}
	csv := version("lamp.v1", "lamp", succeeded)
	l.read(csv)
	changed := version("lamp.v1", "fan", succeeded)
	if got := l.read(changed).subject.Package; got != "fan" {
		t.Errorf("package %q", got)
	}
	l.retain("home", nil)
	if len(l.namespaces) != 0 {
		t.Errorf("remembers %v", l.namespaces)
	}
	if allocs := testing.AllocsPerRun(10, func() { l.read(csv) }); allocs > 0 {
		t.Errorf("reading again allocates %v times", allocs)
	}
}

// TestRefused checks that nothing is decided without exactly one OperatorGroup, and that existing
// versions stay with their Subscriptions.
func TestRefused(t *testing.T) {
	first, second := subscription("first", "lamp"), subscription("second", "lamp")
	v1 := version("lamp.v1", "lamp", succeeded)
	for names, text := range map[string]string{
		"":    "expected 1 OperatorGroup in the namespace, found 0; create an OperatorGroup in namespace home that names the namespaces its operators serve",
		"a,b": "expected 1 OperatorGroup in the namespace, found 2; delete all but one of the OperatorGroups a, b of namespace home",
	} {
		o := observed(read(t), first, second).with([]*operatorsv1alpha1.ClusterServiceVersion{v1}, installPlan("p", "lamp.v1", operatorsv1alpha1.InstallPlanPhaseComplete, 1, second))
		o.groups = groups{}
		if names != "" {
			o.groups.names = strings.Split(names, ",")
		}
		for _, d := range decided(t, o) {
			if d.install != nil || d.err == nil || d.err.Error() != text || temporary(d.err) {
				t.Errorf("%s: installs %v, error %v", d.subscription.Name, d.install, d.err)
			}
			if mine := d.subscription == second; (d.present.current != nil) != mine {
				t.Errorf("%s has %v", d.subscription.Name, d.present.current)
			}
		}
	}
}

// TestFailForward checks when a failed version may be replaced.
func TestFailForward(t *testing.T) {
	sub := subscription("my", "lamp")
	for _, forward := range []bool{false, true} {
		o := observed(read(t), sub).with([]*operatorsv1alpha1.ClusterServiceVersion{version("lamp.v0", "lamp", replacing), version("lamp.v1", "lamp", failed, replaces("lamp.v0"))})
		o.groups.failForward = forward
		d := decided(t, o)[0]
		if got := d.install != nil && d.install.Bundle == "lamp.v2" && d.install.Replaces == "lamp.v1"; got != forward {
			t.Errorf("fail forward %v: installs %+v, error %v", forward, d.install, d.err)
		}
		broken := installPlan("p", "lamp.v2", operatorsv1alpha1.InstallPlanPhaseFailed, 2, sub)
		want := map[bool]operatorsv1alpha1.SubscriptionState{true: operatorsv1alpha1.SubscriptionStateFailed, false: operatorsv1alpha1.SubscriptionStateUpgradePending}[forward]
		if got := statusOf(o, d, broken, at(1)).State; got != want {
			t.Errorf("fail forward %v: state %q, want %q", forward, got, want)
		}
	}
}

// TestPendingSaysNothingNew checks that the health of catalogs does not change while a catalog is
// read for the first time. Other fields do.
func TestPendingSaysNothingNew(t *testing.T) {
	sub := subscription("my", "lamp", knows("lamp.v2", ""))
	o := observed(read(t), sub).with([]*operatorsv1alpha1.ClusterServiceVersion{version("lamp.v2", "lamp", succeeded)})
	before := statusOf(o, decided(t, o)[0], nil, at(1))
	sub.Status.Conditions, sub.Status.CatalogHealth = before.Conditions, before.CatalogHealth
	c := o.catalogs[shop]
	c.State.Snapshot, c.State.Connectivity = nil, "CONNECTING"
	o.catalogs[shop] = c
	own := types.NamespacedName{Namespace: "home", Name: "own"}
	o.catalogs[own] = Catalog{Source: &operatorsv1alpha1.CatalogSource{ObjectMeta: metav1.ObjectMeta{Namespace: own.Namespace, Name: own.Name, UID: "uid-own"}}, State: catalogs.State{Err: catalogs.ErrNotConnected}}
	d := decided(t, o)[0]
	d.err = resolution.ErrPending
	after := statusOf(o, d, nil, at(5))
	if h := after.CatalogHealth; len(h) != 2 || h[0].CatalogSourceRef.Name != own.Name || h[0].Healthy || h[1].Healthy != before.CatalogHealth[0].Healthy {
		t.Errorf("what is known of catalogs: %+v", h)
	}
	if after.InstalledCSV != "lamp.v2" || after.State != operatorsv1alpha1.SubscriptionStateAtLatest {
		t.Errorf("status %+v", after)
	}
	if after.GetCondition(unhealthy).Status != "False" || after.GetCondition(unresolved).Status == "True" {
		t.Errorf("conditions %+v", after.Conditions)
	}
}

func TestClipped(t *testing.T) {
	long := strings.Repeat("ä", maxMessage)
	if got := clipped(long); len(got) > maxMessage || !strings.HasSuffix(got, "ä…") {
		t.Errorf("%d bytes, ending in %q", len(got), got[len(got)-8:])
	}
	if got := clipped("short"); got != "short" {
		t.Errorf("got %q", got)
	}
}

func TestAssign(t *testing.T) {
	choice := func(name string) *resolution.Choice { return &resolution.Choice{Package: name, Bundle: name + ".v1"} }
	relying := func(d *decision, on ...string) *decision {
		d.dependsOn = on
		return d
	}
	lost := func(name string, along string) *decision {
		return &decision{subscription: subscription(name, name), selection: selection{coInstalled: []*resolution.Choice{choice(along)}, identities: []plansteps.Identity{{Package: along, Bundle: along + ".v1", Generated: true}}}}
	}
	wants := func(install string, along ...string) *decision {
		d := &decision{subscription: subscription(install, install), selection: selection{install: choice(install), identities: []plansteps.Identity{{Package: install, Bundle: install + ".v1"}}}}
		for _, name := range along {
			d.coInstalled = append(d.coInstalled, choice(name))
			d.identities = append(d.identities, plansteps.Identity{Package: name, Bundle: name + ".v1", Generated: true})
		}
		return d
	}
	for _, tt := range []struct {
		reason    string
		decisions []*decision
		want      []string
	}{
		{reason: "each for itself", decisions: []*decision{wants("a"), wants("b")}, want: []string{"a.v1", "b.v1"}},
		{reason: "nothing to install", decisions: []*decision{{subscription: subscription("a", "a")}}},
		{reason: "its own first", decisions: []*decision{wants("a", "x", "y")}, want: []string{"a.v1 x.v1* y.v1*"}},
		{reason: "one version for two", decisions: []*decision{wants("a"), wants("a")}, want: []string{"a.v1"}},
		{reason: "two that need the same", decisions: []*decision{wants("a", "x"), wants("c"), wants("b", "x", "y")}, want: []string{"c.v1", "a.v1 b.v1 x.v1* y.v1*"}},
		{reason: "one that brings others together", decisions: []*decision{wants("a", "x"), wants("b", "y"), wants("c", "x", "y")}, want: []string{"a.v1 b.v1 c.v1 x.v1* y.v1*"}},
		{reason: "one that asks for what another needs", decisions: []*decision{relying(wants("a"), "x"), wants("b"), wants("x")}, want: []string{"b.v1", "a.v1 x.v1"}},
		{reason: "one that needs what another asks for", decisions: []*decision{wants("x"), relying(wants("a", "y"), "x", "gone")}, want: []string{"x.v1 a.v1 y.v1*"}},
		{reason: "what was lost", decisions: []*decision{lost("a", "x"), wants("b")}, want: []string{"x.v1*", "b.v1"}},
		{reason: "two that have lost the same", decisions: []*decision{lost("a", "x"), lost("b", "x")}, want: []string{"x.v1*"}},
		{reason: "one that is lost and needed anew", decisions: []*decision{lost("a", "x"), wants("b", "x")}, want: []string{"b.v1 x.v1*"}},
	} {
		var got []string
		for _, a := range desiredPlans(tt.decisions) {
			text := make([]string, 0, len(a.versions))
			for i, v := range a.versions {
				if a.choices[i].Bundle != v.Bundle {
					t.Errorf("%s: choice %s beside version %s", tt.reason, a.choices[i].Bundle, v.Bundle)
				}
				text = append(text, v.Bundle+map[bool]string{true: "*"}[v.Generated])
			}
			got = append(got, strings.Join(text, " "))
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s: plans %q, want %q", tt.reason, got, tt.want)
		}
	}
}
