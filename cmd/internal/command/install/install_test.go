package install

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/cmd/internal/console"
	"github.com/chandlery/chandlery/supervisor/catalogs"
	"github.com/chandlery/chandlery/supervisor/dryrun"
	"github.com/chandlery/chandlery/supervisor/dryrun/inputs"
	"github.com/chandlery/chandlery/supervisor/resolution"
	"github.com/chandlery/chandlery/supervisor/resolution/constraint"
	"github.com/chandlery/chandlery/supervisor/resolution/content"
)

// lamp returns the package lamp: channel stable has versions 1.0.0 and 1.1.0, and channel beta has 2.0.0.
func lamp(t *testing.T) *content.Package {
	t.Helper()
	b := content.NewBuilder(1 << 20)
	for _, e := range []content.ChannelEntry{
		{Channel: "stable", Bundle: "lamp.v1.0.0"},
		{Channel: "stable", Bundle: "lamp.v1.1.0", Replaces: "lamp.v1.0.0"},
		{Channel: "beta", Bundle: "lamp.v2.0.0"},
	} {
		e.Package = "lamp"
		e.Properties = []constraint.Property{{Type: "olm.package", Value: `{"packageName":"lamp","version":"` + strings.TrimPrefix(e.Bundle, "lamp.v") + `"}`}}
		if err := b.Add(e); err != nil {
			t.Fatal(err)
		}
	}
	b.Describe("lamp", "stable", "")
	return b.Build().Package("lamp")
}

// TestChoose covers each way to choose a bundle, and each reason why none is chosen.
func TestChoose(t *testing.T) {
	t.Parallel()
	wares, spare := types.NamespacedName{Namespace: "olm", Name: "wares"}, types.NamespacedName{Namespace: "olm", Name: "spare"}
	pkg := lamp(t)
	one := []offer{{Catalog: wares, Value: pkg}, {Catalog: spare}}
	two := []offer{{Catalog: wares, Value: pkg}, {Catalog: spare, Value: pkg}}
	for name, tt := range map[string]struct {
		request request
		offers  []offer
		want    string
		unread  string
	}{
		"Default":       {offers: one, want: "olm/wares stable lamp.v1.1.0"},
		"Channel":       {request: request{channel: "beta"}, offers: one, want: "olm/wares beta lamp.v2.0.0"},
		"Version":       {request: request{version: "v1.0.0"}, offers: one, want: "olm/wares stable lamp.v1.0.0"},
		"VersionName":   {request: request{version: "lamp.v1.0.0"}, offers: one, want: "olm/wares stable lamp.v1.0.0"},
		"Catalog":       {offers: two[1:], want: "olm/spare stable lamp.v1.1.0"},
		"Two":           {offers: two, want: "package lamp is in the catalogs olm/wares, olm/spare; choose one with --catalog"},
		"None":          {offers: one[1:], want: `no catalog that namespace shop can use has package "lamp"; check the name`},
		"NotInThat":     {request: request{catalog: "olm/spare"}, offers: one[1:], want: `catalog olm/spare (--catalog) has no package "lamp"; check the name and --catalog`},
		"NoCatalog":     {request: request{program: "chandlery"}, want: "namespace shop can use no catalog; 'chandlery status -A' shows all catalogs"},
		"OtherCatalog":  {request: request{program: "chandlery", catalog: "nocat"}, want: `namespace shop can use no catalog "nocat" (--catalog); 'chandlery status -A' shows all catalogs`},
		"NoChannel":     {request: request{channel: "nightly"}, offers: one, want: `package lamp of catalog olm/wares has no channel "nightly"; set --channel to one of beta, stable`},
		"NoVersion":     {request: request{version: "2.0.0"}, offers: one, want: `channel stable of package lamp in catalog olm/wares has no version "2.0.0"; set --version to one of 1.1.0, 1.0.0, or --channel to another channel`},
		"Unreadable":    {offers: []offer{{Catalog: spare, Err: errAway}}, want: "package lamp was not found, and not every catalog can be read: away"},
		"OtherReadable": {offers: append([]offer{{Catalog: spare, Err: errAway}}, one[0]), want: "olm/wares stable lamp.v1.1.0", unread: "not every catalog can be read: away"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tt.request.pkg, tt.request.namespace = "lamp", "shop"
			got, err := choose(&tt.request, tt.offers)
			var text string
			if err != nil {
				text = err.Error()
			} else {
				text = got.catalog.String() + " " + got.entry.Channel.Name + " " + got.entry.Bundle.Name
			}
			unread := ""
			if got.unread != nil {
				unread = got.unread.Error()
			}
			if text != tt.want || unread != tt.unread {
				t.Errorf("got %s, %s\nwant %s, %s", text, unread, tt.want, tt.unread)
			}
		})
	}
}

// TestUncertain covers when a choice depends on catalogs that cannot be read.
func TestUncertain(t *testing.T) {
	t.Parallel()
	away := &console.Coded{Code: console.Negative, Err: errAway}
	sub, group := &operatorsv1alpha1.Subscription{}, &operatorsv1.OperatorGroup{}
	for name, tt := range map[string]struct {
		unread error
		create []client.Object
		want   string
	}{
		"New":     {unread: away, create: []client.Object{group, sub}, want: "away; choose a catalog with --catalog: catalog olm/wares has the package"},
		"Exists":  {unread: away, create: []client.Object{group}},
		"AllRead": {create: []client.Object{group, sub}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := choice{catalog: types.NamespacedName{Namespace: "olm", Name: "wares"}, unread: tt.unread}.uncertain(tt.create)
			text := ""
			if err != nil {
				text = err.Error()
			}
			if text != tt.want || err != nil && console.CodeOf(err) != console.Negative {
				t.Errorf("got %q with code %d, want %q", text, console.CodeOf(err), tt.want)
			}
		})
	}
}

type awayError struct{}

func (awayError) Error() string { return "away" }

var errAway = awayError{}

// TestMissing covers which objects are created for the contents of a namespace.
func TestMissing(t *testing.T) {
	t.Parallel()
	entry := lamp(t).Channel("stable").Entry("lamp.v1.0.0")
	group := func(targets ...string) operatorsv1.OperatorGroup {
		g := operatorsv1.OperatorGroup{Spec: operatorsv1.OperatorGroupSpec{TargetNamespaces: targets}}
		g.Name = "group"
		return g
	}
	sub := func(name, pkg, channel string) operatorsv1alpha1.Subscription {
		s := operatorsv1alpha1.Subscription{Spec: &operatorsv1alpha1.SubscriptionSpec{
			Package: pkg, Channel: channel, CatalogSource: "wares", CatalogSourceNamespace: "olm",
		}}
		s.Name = name
		return s
	}
	modes := func(types ...operatorsv1alpha1.InstallModeType) []operatorsv1alpha1.InstallMode {
		var all []operatorsv1alpha1.InstallMode
		for _, one := range types {
			all = append(all, operatorsv1alpha1.InstallMode{Type: one, Supported: true})
		}
		return all
	}
	own, single, everywhere := operatorsv1alpha1.InstallModeTypeOwnNamespace, operatorsv1alpha1.InstallModeTypeSingleNamespace, operatorsv1alpha1.InstallModeTypeAllNamespaces
	const subscription = "Subscription shop/lamp: package lamp, channel stable, catalog olm/wares, approval Automatic"
	for name, tt := range map[string]struct {
		request request
		has     inventory
		modes   []operatorsv1alpha1.InstallMode
		want    []string
		err     string
	}{
		"Everything":    {want: []string{"Namespace shop", "OperatorGroup shop/shop, for all namespaces", subscription}},
		"All":           {has: inventory{exists: true}, modes: modes(own, everywhere), want: []string{"OperatorGroup shop/shop, for all namespaces", subscription}},
		"Own":           {has: inventory{exists: true}, modes: modes(own), want: []string{"OperatorGroup shop/shop, for shop", subscription}},
		"Targets":       {request: request{targets: []string{"a"}}, has: inventory{exists: true}, modes: modes(single), want: []string{"OperatorGroup shop/shop, for a", subscription}},
		"AbsentTarget":  {request: request{targets: []string{"shop", "a"}}, has: inventory{absentTargets: []string{"shop", "a"}}, err: "namespace a (--target-namespaces) does not exist; check the name, or create it: kubectl create namespace a"},
		"AbsentOwn":     {request: request{targets: []string{"shop"}}, has: inventory{absentTargets: []string{"shop"}}, want: []string{"Namespace shop", "OperatorGroup shop/shop, for shop", subscription}},
		"NoMode":        {has: inventory{exists: true}, modes: modes(single), err: "ClusterServiceVersion lamp.v1.0.0 does not support install mode OwnNamespace (spec.installModes), but SingleNamespace; change --target-namespaces"},
		"Multi":         {request: request{targets: []string{"a", "b"}}, has: inventory{exists: true}, modes: modes(own), err: "ClusterServiceVersion lamp.v1.0.0 does not support install mode MultiNamespace (spec.installModes), but OwnNamespace; change --target-namespaces"},
		"Group":         {has: inventory{exists: true, groups: []operatorsv1.OperatorGroup{group("a")}}, want: []string{subscription}},
		"OtherTargets":  {request: request{targets: []string{"b"}}, has: inventory{exists: true, groups: []operatorsv1.OperatorGroup{group("a")}}, err: `OperatorGroup shop/group exists, and its spec.targetNamespaces is ["a"], not ["b"]; leave out --target-namespaces, or choose another --namespace`},
		"Manual":        {request: request{approval: "Manual"}, has: inventory{exists: true, groups: []operatorsv1.OperatorGroup{group()}}, want: []string{strings.Replace(subscription, "Automatic", "Manual", 1)}},
		"Exists":        {has: inventory{exists: true, groups: []operatorsv1.OperatorGroup{group()}, subscriptions: []operatorsv1alpha1.Subscription{sub("mine", "lamp", "beta")}}},
		"OtherChannel":  {request: request{channel: "stable"}, has: inventory{exists: true, groups: []operatorsv1.OperatorGroup{group()}, subscriptions: []operatorsv1alpha1.Subscription{sub("mine", "lamp", "beta")}}, err: `Subscription shop/mine exists, and its spec.channel is "beta", not "stable"; leave out --channel, or change the Subscription`},
		"OtherVersion":  {request: request{version: "1.0.0"}, has: inventory{exists: true, groups: []operatorsv1.OperatorGroup{group()}, subscriptions: []operatorsv1alpha1.Subscription{sub("mine", "lamp", "beta")}}, err: `Subscription shop/mine exists, and its spec.startingCSV is "", not "lamp.v1.0.0"; leave out --version, or change the Subscription`},
		"OtherApproval": {request: request{approval: "Manual"}, has: inventory{exists: true, groups: []operatorsv1.OperatorGroup{group()}, subscriptions: []operatorsv1alpha1.Subscription{sub("mine", "lamp", "beta")}}, err: `Subscription shop/mine exists, and its spec.installPlanApproval is "Automatic", not "Manual"; leave out --approval, or change the Subscription`},
		"OtherPackage":  {has: inventory{exists: true, groups: []operatorsv1.OperatorGroup{group()}, subscriptions: []operatorsv1alpha1.Subscription{sub("lamp", "torch", "beta")}}, err: "Subscription shop/lamp exists, and is for another package (spec.name); choose another --namespace"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tt.request.pkg, tt.request.namespace = "lamp", "shop"
			objects, _, err := missing(&tt.request, choice{catalog: types.NamespacedName{Namespace: "olm", Name: "wares"}, entry: entry}, &tt.has, tt.modes)
			text := ""
			if err != nil {
				text = err.Error()
				if code := console.CodeOf(err); code != console.Negative {
					t.Errorf("exit code %d", code)
				}
			}
			if diff := cmp.Diff(tt.want, described(objects)); diff != "" || text != tt.err {
				t.Errorf("error %q, want %q (-want +got):\n%s", text, tt.err, diff)
			}
		})
	}
}

func described(objects []client.Object) []string {
	var lines []string
	for _, o := range objects {
		lines = append(lines, describe(o))
	}
	return lines
}

// TestSimilarNames covers the suggestions for a package that no catalog has.
func TestSimilarNames(t *testing.T) {
	t.Parallel()
	b := content.NewBuilder(1 << 20)
	for _, name := range []string{"lantern", "lanterns", "compass"} {
		properties := []constraint.Property{{Type: "olm.package", Value: `{"packageName":"` + name + `","version":"1.0.0"}`}}
		if err := b.Add(content.ChannelEntry{Package: name, Channel: "stable", Bundle: name + ".v1", Properties: properties}); err != nil {
			t.Fatal(err)
		}
	}
	read := inputs.CatalogContent{Snapshot: &catalogs.Snapshot{Content: b.Build()}}
	contents := map[resolution.CatalogKey]inputs.CatalogContent{{Namespace: "olm", Name: "a"}: read, {Namespace: "olm", Name: "b"}: read, {Namespace: "olm", Name: "c"}: {}}
	var sources []*operatorsv1alpha1.CatalogSource
	for _, name := range []string{"a", "b", "c"} {
		source := &operatorsv1alpha1.CatalogSource{Spec: operatorsv1alpha1.CatalogSourceSpec{SourceType: operatorsv1alpha1.SourceTypeGrpc, Address: "localhost:1"}}
		source.Namespace, source.Name = "olm", name
		sources = append(sources, source)
	}
	for name, want := range map[string]string{
		"lantrn": `no catalog that namespace shop can use has package "lantrn"; check the name; did you mean lantern or lanterns?`,
		"wick":   `no catalog that namespace shop can use has package "wick"; check the name`,
	} {
		r := &request{pkg: name, namespace: "shop"}
		_, err := choose(r, packageOffers(r, sources, contents))
		addSimilarNames(err, sources, contents)
		if err == nil || err.Error() != want || console.CodeOf(err) != console.Negative {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// TestInstalledVersion covers requests for a version if the Subscription exists.
func TestInstalledVersion(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		installed, starting, version string
		entry                        string
		err                          string
	}{
		"Same":      {installed: "lamp.v1.1.0", starting: "lamp.v1.0.0", version: "1.1.0", entry: "lamp.v1.1.0"},
		"AnyOf":     {installed: "lamp.v1.0.0", entry: "lamp.v1.1.0"},
		"Older":     {installed: "lamp.v1.1.0", starting: "lamp.v1.0.0", version: "1.0.0", entry: "lamp.v1.0.0", err: "Subscription shop/mine has lamp.v1.1.0 installed, not version 1.0.0; remove the operator first: 'chandlery remove mine -n shop --dry-run' shows what is removed"},
		"Newer":     {installed: "lamp.v1.0.0", version: "lamp.v1.1.0", entry: "lamp.v1.1.0", err: "Subscription shop/mine has lamp.v1.0.0 installed, not version 1.1.0; set its spec.installPlanApproval to Manual, and run 'chandlery upgrade mine -n shop --version 1.1.0'"},
		"Unknown":   {installed: "lamp.v0", version: "1.1.0", entry: "lamp.v1.1.0", err: "Subscription shop/mine has lamp.v0 installed, not version 1.1.0; remove the operator first: 'chandlery remove mine -n shop --dry-run' shows what is removed"},
		"Requested": {starting: "lamp.v1.0.0", version: "1.0.0", entry: "lamp.v1.0.0"},
		"Starting":  {starting: "lamp.v1.1.0", version: "1.0.0", entry: "lamp.v1.0.0", err: `Subscription shop/mine exists, and its spec.startingCSV is "lamp.v1.1.0", not "lamp.v1.0.0"; leave out --version, or change the Subscription`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sub := operatorsv1alpha1.Subscription{Spec: &operatorsv1alpha1.SubscriptionSpec{
				Package: "lamp", CatalogSource: "wares", CatalogSourceNamespace: "olm", StartingCSV: tt.starting,
			}}
			sub.Name, sub.Status.InstalledCSV = "mine", tt.installed
			chosen := choice{catalog: types.NamespacedName{Namespace: "olm", Name: "wares"}, entry: lamp(t).Channel("stable").Entry(tt.entry)}
			r := request{program: "chandlery", pkg: "lamp", namespace: "shop", version: tt.version}
			_, err := existingSubscription(&r, chosen, &inventory{subscriptions: []operatorsv1alpha1.Subscription{sub}})
			text := ""
			if err != nil {
				text = err.Error()
			}
			if text != tt.err {
				t.Errorf("error %q, want %q", text, tt.err)
			}
			if code := console.CodeOf(err); tt.installed != "" && text != "" && code != console.Negative {
				t.Errorf("code %d", code)
			}
		})
	}
}

// TestStartingCSV checks that a version sets spec.startingCSV.
func TestStartingCSV(t *testing.T) {
	t.Parallel()
	entry := lamp(t).Channel("stable").Entry("lamp.v1.0.0")
	for version, want := range map[string]string{"": "", "1.0.0": "lamp.v1.0.0"} {
		sub := newSubscription(&request{pkg: "lamp", namespace: "shop", version: version}, choice{entry: entry})
		if sub.Spec.StartingCSV != want {
			t.Errorf("version %q: startingCSV %q, want %q", version, sub.Spec.StartingCSV, want)
		}
	}
}

// TestProblemOfLaterVersion covers a problem of the second version: with manual approval, the first one is installed.
func TestProblemOfLaterVersion(t *testing.T) {
	t.Parallel()
	refused := []dryrun.Refusal{{Subscription: "lamp", Reason: "lamp.v2 would fail"}}
	first := []dryrun.Step{step(1, "lamp.v1", "1.0.0", "lamp")}
	for name, tt := range map[string]struct {
		approval operatorsv1alpha1.Approval
		plan     dryrun.Result
		want     string
	}{
		"Manual":    {approval: operatorsv1alpha1.ApprovalManual, plan: dryrun.Result{Steps: first, Refusals: refused}},
		"First":     {approval: operatorsv1alpha1.ApprovalManual, plan: dryrun.Result{Refusals: refused}, want: "lamp.v2 would fail"},
		"Automatic": {plan: dryrun.Result{Steps: first, Refusals: refused}, want: "lamp.v2 would fail"},
		"Blocked": {
			approval: operatorsv1alpha1.ApprovalManual, plan: dryrun.Result{Steps: first, Blocked: "there are two OperatorGroups"}, want: "there are two OperatorGroups",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := request{approval: tt.approval}
			if got := r.problemOf(&plan{Subscription: "lamp", Plan: &tt.plan}); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}
