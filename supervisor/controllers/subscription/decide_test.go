package subscription

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/onsi/gomega"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/chandlery/chandlery/supervisor/catalogs"
	"github.com/chandlery/chandlery/supervisor/catalogs/dialtls"
	"github.com/chandlery/chandlery/supervisor/plansteps"
	"github.com/chandlery/chandlery/supervisor/resolution"
	"github.com/chandlery/chandlery/test/fakecatalog"
)

var shop = types.NamespacedName{Namespace: "olm", Name: "shop"}

// read returns the catalog of the tests: lamp with a chain of two versions, fan with manifests in
// an image, husk without manifests.
func read(t *testing.T) catalogs.State {
	t.Helper()
	return readFrom(
		t,
		fakecatalog.Simple("fan", fakecatalog.Entry{Name: "fan.v1", Version: "1.0.0", Image: "registry.example/fan:1"}),
		fakecatalog.Simple("husk", fakecatalog.Entry{Name: "husk.v1", Version: "1.0.0"}),
		fakecatalog.Simple(
			"lamp",
			fakecatalog.Entry{Name: "lamp.v1", Version: "1.0.0", Objects: []string{"{1}"}},
			fakecatalog.Entry{Name: "lamp.v2", Version: "2.0.0", Replaces: "lamp.v1", Objects: []string{"{2}"}},
		),
	)
}

// readFrom returns a catalog with packages.
func readFrom(t *testing.T, packages ...fakecatalog.Package) catalogs.State {
	t.Helper()
	server := fakecatalog.Start(t, packages...)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	store := catalogs.NewStore(ctx, time.Minute, clock.RealClock{})
	if err := store.Follow(shop, server.Address(), dialtls.Security{}); err != nil {
		t.Fatal(err)
	}
	var state catalogs.State
	gomega.NewWithT(t).Eventually(func() bool {
		state, _ = store.State(shop)
		return state.Ready()
	}).WithTimeout(20 * time.Second).WithPolling(time.Millisecond).Should(gomega.BeTrue())
	return state
}

// observed returns a namespace with a healthy catalog.
func observed(state catalogs.State, subs ...*operatorsv1alpha1.Subscription) *namespaceState {
	source := &operatorsv1alpha1.CatalogSource{ObjectMeta: metav1.ObjectMeta{Namespace: shop.Namespace, Name: shop.Name, UID: "uid-shop"}}
	source.Spec.SourceType, source.Spec.Address = operatorsv1alpha1.SourceTypeGrpc, "shop:50051"
	return &namespaceState{
		namespace: "home", global: "olm", subscriptions: subs,
		plans:      planSet{},
		groups:     groups{names: []string{"group"}},
		properties: &propertyCache{},
		catalogs:   catalogSet{shop: {Source: source, State: state, Followed: true}},
	}
}

// decided returns the decisions for a namespace, with their identities.
func decided(t *testing.T, o *namespaceState) []*decision {
	t.Helper()
	decisions := decide(t.Context(), o, resolution.Resolve)
	return identified(decisions, o.catalogs, nil)
}

func (o *namespaceState) with(csvs []*operatorsv1alpha1.ClusterServiceVersion, plans ...*operatorsv1alpha1.InstallPlan) *namespaceState {
	o.versions = csvs
	for _, p := range plans {
		o.plans[p.Name] = p
	}
	return o
}

func installPlan(name, csv string, phase operatorsv1alpha1.InstallPlanPhase, generation int, owners ...*operatorsv1alpha1.Subscription) *operatorsv1alpha1.InstallPlan {
	p := &operatorsv1alpha1.InstallPlan{
		ObjectMeta: metav1.ObjectMeta{Namespace: "home", Name: name, UID: types.UID("uid-" + name), ResourceVersion: "7"},
		Spec:       operatorsv1alpha1.InstallPlanSpec{ClusterServiceVersionNames: []string{csv}, Generation: generation},
		Status:     operatorsv1alpha1.InstallPlanStatus{Phase: phase},
	}
	for _, sub := range owners {
		p.OwnerReferences = append(p.OwnerReferences, ownerReference(sub))
	}
	return p
}

func TestDecide(t *testing.T) {
	const working, complete = operatorsv1alpha1.InstallPlanPhaseInstalling, operatorsv1alpha1.InstallPlanPhaseComplete
	type list = []*operatorsv1alpha1.ClusterServiceVersion
	state := read(t)
	lamp := subscription("my-lamp", "lamp")
	from1 := subscription("my-lamp", "lamp", func(sub *operatorsv1alpha1.Subscription) { sub.Spec.StartingCSV = "lamp.v1" })
	for _, tt := range []struct {
		reason   string
		sub      *operatorsv1alpha1.Subscription
		csvs     list
		plans    []*operatorsv1alpha1.InstallPlan
		install  string
		replaces string
		says     string // what describe returns
		err      string
	}{
		{reason: "nothing is there", sub: lamp, install: "lamp.v2", replaces: "lamp.v1", says: "install lamp.v2"},
		{reason: "the newest is there", sub: lamp, csvs: list{version("lamp.v2", "lamp", succeeded)}, says: "up to date"},
		{reason: "a newer one is there", sub: lamp, csvs: list{version("lamp.v1", "lamp", succeeded)}, install: "lamp.v2", replaces: "lamp.v1", says: "install lamp.v2"},
		{
			reason: "the plan still has steps to apply", sub: lamp, csvs: list{version("lamp.v1", "lamp", succeeded)},
			plans: []*operatorsv1alpha1.InstallPlan{installPlan("p", "lamp.v1", working, 1, lamp)}, says: "waiting for InstallPlan p",
		},
		{
			reason: "a plan is bringing a newer one that is not there yet", sub: lamp, csvs: list{version("lamp.v1", "lamp", succeeded)},
			plans: []*operatorsv1alpha1.InstallPlan{installPlan("p", "lamp.v1", complete, 1, lamp), installPlan("q", "lamp.v2", working, 2, lamp)}, says: "waiting for InstallPlan q",
		},
		{
			reason: "a plan that waits for approval does not hold it up", sub: lamp, csvs: list{version("lamp.v1", "lamp", succeeded)},
			plans:   []*operatorsv1alpha1.InstallPlan{installPlan("p", "lamp.v1", complete, 1, lamp), installPlan("q", "lamp.v2", "RequiresApproval", 2, lamp)},
			install: "lamp.v2", replaces: "lamp.v1", says: "install lamp.v2",
		},
		{
			reason: "a plan of an older one does not", sub: lamp, csvs: list{version("lamp.v2", "lamp", succeeded)},
			plans: []*operatorsv1alpha1.InstallPlan{installPlan("p", "lamp.v1", working, 1, lamp), installPlan("q", "lamp.v2", complete, 2, lamp)}, says: "up to date",
		},
		{
			reason: "somebody else's plan does not hold it up", sub: lamp, csvs: list{version("lamp.v1", "lamp", succeeded)},
			plans: []*operatorsv1alpha1.InstallPlan{installPlan("p", "lamp.v1", working, 1, subscription("other", "lamp"))}, install: "lamp.v2", replaces: "lamp.v1", says: "install lamp.v2",
		},
		{
			reason: "an older plan of the same version does not", sub: lamp, csvs: list{version("lamp.v1", "lamp", succeeded)},
			plans:   []*operatorsv1alpha1.InstallPlan{installPlan("p", "lamp.v1", working, 1, lamp), installPlan("q", "lamp.v1", complete, 2, lamp)},
			install: "lamp.v2", replaces: "lamp.v1", says: "install lamp.v2",
		},
		{reason: "a version is under way", sub: lamp, csvs: list{version("lamp.v1", "lamp", installing)}, says: "waiting for lamp.v1 in phase Installing"},
		{
			reason: "a version waits and has its plan", sub: lamp, csvs: list{version("lamp.v1", "lamp", pending)},
			plans: []*operatorsv1alpha1.InstallPlan{installPlan("p", "lamp.v1", working, 1, lamp)}, says: "waiting for lamp.v1 in phase Pending",
		},
		{reason: "a version waits and its plan was deleted", sub: lamp, csvs: list{version("lamp.v1", "lamp", pending, replaces("lamp.v0"))}, install: "lamp.v1", replaces: "lamp.v0", says: "install lamp.v1"},
		{reason: "a version waits that the catalog does not have", sub: lamp, csvs: list{version("lamp.v7", "lamp", pending)}, says: "waiting for lamp.v7 in phase Pending"},
		{reason: "a version failed", sub: lamp, csvs: list{version("lamp.v1", "lamp", failed, once(succeeded))}, says: "waiting for lamp.v1 in phase Failed"},
		{reason: "the version to start with", sub: from1, install: "lamp.v1", says: "install lamp.v1"},
		{reason: "no manifests at all", sub: subscription("my-husk", "husk"), says: "planning failed", err: "bundle husk.v1 of package husk cannot be installed: the catalog has no manifests for it"},
		{reason: "an unknown package", sub: subscription("my-gone", "gone"), says: "resolution failed", err: "no operators found in package gone"},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			decisions := decided(t, observed(state, tt.sub).with(tt.csvs, tt.plans...))
			if len(decisions) != 1 || decisions[0].subscription != tt.sub {
				t.Fatalf("decisions %+v", decisions)
			}
			d := decisions[0]
			if got := d.String(); got != tt.says {
				t.Errorf("decision %q, want %q", got, tt.says)
			}
			if (d.err == nil) != (tt.err == "") || (d.err != nil && !strings.Contains(d.err.Error(), tt.err)) {
				t.Errorf("error %v, want %q", d.err, tt.err)
			}
			if (d.install == nil) != (tt.install == "") {
				t.Fatalf("installs %+v, want %q", d.install, tt.install)
			}
			if d.install == nil {
				return
			}
			checkIdentity(t, state, d, tt.install, tt.replaces)
		})
	}
}

// withUnpacked returns a plan of OLM with steps in some states. Their manifests are in a ConfigMap.
func withUnpacked(p *operatorsv1alpha1.InstallPlan, states ...operatorsv1alpha1.StepStatus) *operatorsv1alpha1.InstallPlan {
	for _, state := range states {
		p.Status.Plan = append(p.Status.Plan, &operatorsv1alpha1.Step{Status: state, Resource: operatorsv1alpha1.StepResource{
			Manifest: `{"kind":"ConfigMap","name":"abc","namespace":"olm","catalogSourceName":"shop"}`,
		}})
	}
	return p
}

// TestDecideAfterOLM has a plan that OLM had begun and that cannot be continued, although its version exists.
func TestDecideAfterOLM(t *testing.T) {
	const failedPlan, unknown = operatorsv1alpha1.InstallPlanPhaseFailed, operatorsv1alpha1.StepStatusUnknown
	state, lamp := read(t), subscription("my-lamp", "lamp")
	begun := func(states ...operatorsv1alpha1.StepStatus) *operatorsv1alpha1.InstallPlan {
		return withUnpacked(installPlan("p", "lamp.v1", failedPlan, 1, lamp), states...)
	}
	for _, tt := range []struct {
		reason   string
		csv      *operatorsv1alpha1.ClusterServiceVersion
		plans    []*operatorsv1alpha1.InstallPlan
		replaces string
		says     string
	}{
		{
			reason: "the version waits", csv: version("lamp.v1", "lamp", pending, replaces("lamp.v0")),
			plans: []*operatorsv1alpha1.InstallPlan{begun("Created", unknown)}, replaces: "lamp.v0", says: "install lamp.v1",
		},
		{
			reason: "the version works", csv: version("lamp.v1", "lamp", succeeded),
			plans: []*operatorsv1alpha1.InstallPlan{begun("Created", unknown)}, says: "install lamp.v1",
		},
		{
			reason: "another plan is in progress", csv: version("lamp.v1", "lamp", pending),
			plans: []*operatorsv1alpha1.InstallPlan{begun(unknown), installPlan("q", "lamp.v1", operatorsv1alpha1.InstallPlanPhaseInstalling, 2, lamp)},
			says:  "waiting for lamp.v1 in phase Pending",
		},
		{
			reason: "all parts exist", csv: version("lamp.v1", "lamp", pending),
			plans: []*operatorsv1alpha1.InstallPlan{begun("Created", "Present")}, says: "waiting for lamp.v1 in phase Pending",
		},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			d := decided(t, observed(state, lamp).with([]*operatorsv1alpha1.ClusterServiceVersion{tt.csv}, tt.plans...))[0]
			if got := d.String(); got != tt.says || d.err != nil {
				t.Fatalf("decision %q, error %v, want %q", got, d.err, tt.says)
			}
			if d.install != nil {
				checkIdentity(t, state, d, "lamp.v1", tt.replaces)
			}
		})
	}
}

// checkIdentity checks that a decision is for one version of lamp and no other.
func checkIdentity(t *testing.T, state catalogs.State, d *decision, install, takesOver string) {
	t.Helper()
	want := plansteps.Identity{Catalog: "olm/shop", Package: "lamp", Channel: "stable", Bundle: install, Replaces: takesOver, Content: state.Snapshot.Manifests("lamp", install)}
	if diff := cmp.Diff([]plansteps.Identity{want}, d.identities); diff != "" || want.Content == "" {
		t.Errorf("versions (-want +got):\n%s", diff)
	}
}

// TestDecideEachOnItsOwn checks that the problems of some Subscriptions do not affect another.
func TestDecideEachOnItsOwn(t *testing.T) {
	away := subscription("away", "lamp", func(sub *operatorsv1alpha1.Subscription) { sub.Spec.CatalogSource = "gone" })
	channel := subscription("channel", "lamp", func(sub *operatorsv1alpha1.Subscription) { sub.Spec.Channel = "gone" })
	fan, husk, gone, lamp := subscription("fan", "fan"), subscription("husk", "husk"), subscription("gone", "gone"), subscription("lamp", "lamp")
	for _, d := range decided(t, observed(read(t), away, channel, fan, husk, gone, lamp)) {
		if good := d.subscription == lamp || d.subscription == fan; good != (d.err == nil) || good != (d.install != nil) {
			t.Errorf("%s: installs %+v, error %v", d.subscription.Name, d.install, d.err)
		}
	}
}

func TestContent(t *testing.T) {
	state := read(t)
	errRead := errors.New("failed to list bundles")
	stale := state
	stale.Err, stale.Connectivity = errRead, "TRANSIENT_FAILURE"
	unusable := observed(state).catalogs[shop].Source.DeepCopy()
	unusable.Spec.Address = ""
	source := observed(state).catalogs[shop].Source
	for _, tt := range []struct {
		reason  string
		catalog Catalog
		err     string
		pending bool
	}{
		{reason: "well", catalog: Catalog{Source: source, State: state, Followed: true}},
		{reason: "away, with a snapshot", catalog: Catalog{Source: source, State: stale, Followed: true}},
		{reason: "nothing answers", catalog: Catalog{Source: source, State: catalogs.State{Address: "shop:50051", Connectivity: "TRANSIENT_FAILURE"}, Followed: true}, err: "nothing answers at shop:50051"},
		{reason: "no connection yet", catalog: Catalog{Source: source, State: catalogs.State{Address: "shop:50051", Connectivity: "CONNECTING"}, Followed: true}, pending: true},
		{reason: "being read", catalog: Catalog{Source: source, State: catalogs.State{Address: "shop:50051", Connectivity: "READY"}, Followed: true}, pending: true},
		{reason: "not followed yet", catalog: Catalog{Source: source}, pending: true},
		{reason: "cannot be used", catalog: Catalog{Source: unusable}, err: "no registry client established: image and address unset"},
		{reason: "cannot be read", catalog: Catalog{Source: source, State: catalogs.State{Err: errRead}, Followed: true}, err: errRead.Error()},
	} {
		got := resolverCatalog(tt.catalog)
		if (got.Err == nil) != (tt.err == "") || (got.Content == nil) != (tt.err != "" || tt.pending) || got.Pending != tt.pending {
			t.Errorf("%s: content %v, error %v", tt.reason, got.Content, got.Err)
		} else if got.Err != nil && !strings.Contains(got.Err.Error(), tt.err) {
			t.Errorf("%s: error %q does not contain %q", tt.reason, got.Err, tt.err)
		}
	}
}

func TestApprovalOf(t *testing.T) {
	automatic := &decision{subscription: subscription("a", "lamp")}
	byHand := &decision{subscription: subscription("m", "lamp", manual)}
	for _, tt := range []struct {
		reason string
		served []*decision
		want   operatorsv1alpha1.Approval
	}{
		{reason: "automatic is the default", served: []*decision{automatic}, want: operatorsv1alpha1.ApprovalAutomatic},
		{reason: "one that wants to be asked is asked", served: []*decision{automatic, byHand}, want: operatorsv1alpha1.ApprovalManual},
		{reason: "asked alone", served: []*decision{byHand}, want: operatorsv1alpha1.ApprovalManual},
	} {
		if got := approvalOf(tt.served); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.reason, got, tt.want)
		}
	}
}

func TestNextGeneration(t *testing.T) {
	sub := subscription("a", "lamp")
	o := observed(catalogs.State{}, sub)
	if got := o.plans.nextGeneration(o.subscriptions); got != 1 {
		t.Errorf("the first plan has generation %d", got)
	}
	o.with(nil, installPlan("p", "lamp.v1", "", 4, sub), installPlan("q", "lamp.v1", "", 3, sub))
	if got := o.plans.nextGeneration(o.subscriptions); got != 5 {
		t.Errorf("after plans of generation 4 and 3: %d", got)
	}
	sub.Status.InstallPlanGeneration = 9
	if got := o.plans.nextGeneration(o.subscriptions); got != 10 {
		t.Errorf("after a plan of generation 9 that is gone: %d", got)
	}
}

func TestTemporary(t *testing.T) {
	for _, tt := range []struct {
		err  error
		want bool
	}{
		{err: nil},
		{err: &resolution.UnsatisfiableError{}},
		{err: &planError{err: plansteps.ErrNoInlineManifests}},
		{err: &planError{err: errContentUnknown}},
		{err: &planError{err: errors.New("timeout")}, want: true},
		{err: &resolution.CatalogError{Err: errors.New("away")}, want: true},
	} {
		if got := temporary(tt.err); got != tt.want {
			t.Errorf("temporary(%v) = %v", tt.err, got)
		}
	}
}

// TestDecideWhileAVersionIsUnderWay has a Subscription whose version waits for a deleted plan, and
// other Subscriptions for the same package.
func TestDecideWhileAVersionIsUnderWay(t *testing.T) {
	first, same := subscription("first", "lamp"), subscription("same", "lamp")
	alike := subscription("alike", "lamp", func(sub *operatorsv1alpha1.Subscription) { sub.Spec.Channel = "" })
	other := subscription("other", "lamp", func(sub *operatorsv1alpha1.Subscription) { sub.Spec.Channel = "other" })
	mistaken := subscription("mistaken", "lamp", func(sub *operatorsv1alpha1.Subscription) { sub.Spec.Channel = "gone" })
	want := map[string]string{
		"first": "install lamp.v1", "same": "install lamp.v1", "alike": "install lamp.v1",
		"other": "no operators found in channel other", "mistaken": "no operators found in channel gone",
	}
	o := observed(read(t), mistaken, first, same, alike, other).with([]*operatorsv1alpha1.ClusterServiceVersion{version("lamp.v1", "lamp", pending)})
	for _, d := range decided(t, o) {
		got := d.String()
		if d.err != nil {
			got = d.err.Error()
		}
		if !strings.Contains(got, want[d.subscription.Name]) {
			t.Errorf("%s: %s, want %s", d.subscription.Name, got, want[d.subscription.Name])
		}
	}
}

// TestDecideKeepsThePackage has an invalid Subscription that is older than the one whose version was
// installed. It must not get the version, neither when the error becomes irrelevant nor when it is
// fixed.
func TestDecideKeepsThePackage(t *testing.T) {
	good := subscription("good", "lamp", func(sub *operatorsv1alpha1.Subscription) {
		sub.Spec.InstallPlanApproval = operatorsv1alpha1.ApprovalManual
	})
	v1 := version("lamp.v1", "lamp", succeeded)
	for _, tt := range []struct {
		reason string
		spec   func(*operatorsv1alpha1.Subscription)
	}{
		{reason: "a starting version that never was", spec: func(sub *operatorsv1alpha1.Subscription) { sub.Spec.Channel, sub.Spec.StartingCSV = "other", "lamp.v9" }},
		{reason: "another channel", spec: func(sub *operatorsv1alpha1.Subscription) { sub.Spec.Channel = "other" }},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			o := observed(read(t), subscription("bad", "lamp", tt.spec), good).with([]*operatorsv1alpha1.ClusterServiceVersion{v1},
				installPlan("p", "lamp.v1", operatorsv1alpha1.InstallPlanPhaseComplete, 1, good))
			for _, d := range decided(t, o) {
				if d.subscription == good {
					if d.err != nil {
						t.Errorf("good: %v", d.err)
					}
					continue
				}
				got := statusOf(o, d, nil, at(1))
				if d.install != nil || !packageKeptByOther(d.err) || got.InstalledCSV != "" || got.State != operatorsv1alpha1.SubscriptionStateNone {
					t.Errorf("bad: install %v, error %v, status %+v", d.install, d.err, got)
				}
			}
		})
	}
}

// TestDecideAfterTheVersionWasDeleted checks that the deleted version is installed again, and not
// the startingCSV.
func TestDecideAfterTheVersionWasDeleted(t *testing.T) {
	sub := subscription("my", "lamp", func(sub *operatorsv1alpha1.Subscription) { sub.Spec.StartingCSV = "lamp.v1" })
	o := observed(read(t), sub).with(nil,
		installPlan("p", "lamp.v1", operatorsv1alpha1.InstallPlanPhaseComplete, 1, sub),
		installPlan("q", "lamp.v2", operatorsv1alpha1.InstallPlanPhaseComplete, 2, sub))
	if d := decided(t, o)[0]; d.install == nil || d.install.Bundle != "lamp.v2" {
		t.Errorf("installs %+v, error %v; want lamp.v2", d.install, d.err)
	}
}

func TestSuperseded(t *testing.T) {
	waiting := operatorsv1alpha1.InstallPlanPhaseRequiresApproval
	sub, other := subscription("my", "lamp"), subscription("other", "fan")
	v1 := version("lamp.v1", "lamp", succeeded)
	for _, tt := range []struct {
		reason string
		csvs   []*operatorsv1alpha1.ClusterServiceVersion
		plan   *operatorsv1alpha1.InstallPlan
		want   bool
	}{
		{reason: "another version is to be installed", csvs: []*operatorsv1alpha1.ClusterServiceVersion{v1}, plan: installPlan("old", "lamp.v1.5", waiting, 1, sub), want: true},
		{reason: "the newest version is there", csvs: []*operatorsv1alpha1.ClusterServiceVersion{version("lamp.v2", "lamp", succeeded)}, plan: installPlan("old", "lamp.v1.5", waiting, 1, sub), want: true},
		{reason: "it is the one that was decided on", csvs: []*operatorsv1alpha1.ClusterServiceVersion{v1}, plan: installPlan("new", "lamp.v2", waiting, 1, sub)},
		{reason: "it has been begun", csvs: []*operatorsv1alpha1.ClusterServiceVersion{v1}, plan: installPlan("old", "lamp.v1.5", operatorsv1alpha1.InstallPlanPhaseInstalling, 1, sub)},
		{reason: "something is under way", csvs: []*operatorsv1alpha1.ClusterServiceVersion{version("lamp.v1", "lamp", installing)}, plan: installPlan("old", "lamp.v1.5", waiting, 1, sub)},
		{reason: "it serves one without an answer too", csvs: []*operatorsv1alpha1.ClusterServiceVersion{v1}, plan: installPlan("old", "lamp.v1.5", waiting, 1, sub, other)},
		{reason: "it serves nobody that is here", csvs: []*operatorsv1alpha1.ClusterServiceVersion{v1}, plan: installPlan("old", "lamp.v1.5", waiting, 1)},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			o := observed(read(t), sub, other).with(tt.csvs, tt.plan)
			decisions := decided(t, o)
			plans := map[string]*operatorsv1alpha1.InstallPlan{}
			if decisions[0].install != nil {
				plans["my"] = installPlan("new", decisions[0].install.Bundle, waiting, 2, sub)
			}
			decisions[1].err = resolution.ErrPending
			if got := len((&planState{namespaceState: o, decisions: decisions, ensured: plans}).superseded()) == 1; got != tt.want {
				t.Errorf("superseded: %v, want %v", got, tt.want)
			}
		})
	}
}
