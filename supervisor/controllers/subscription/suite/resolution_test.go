package suite_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/onsi/gomega"
	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/test/controlplane"
	"github.com/chandlery/chandlery/test/fakecatalog"
)

// TestTwentySubscriptions has twenty Subscriptions in one namespace. Three cannot be resolved, in
// different ways, and do not affect the others.
func TestTwentySubscriptions(t *testing.T) {
	w := newWorld(t)
	var (
		packages []fakecatalog.Package
		good     []string
		along    []string
	)
	for i := range 12 {
		name := fmt.Sprintf("plain-%02d", i)
		packages, good = append(packages, single(name, gvk("olm.gvk", fmt.Sprintf("Plain%02d", i)))), append(good, name)
	}
	for i := range 2 {
		provider, needy := fmt.Sprintf("socket-%d", i), fmt.Sprintf("needs-package-%d", i)
		packages = append(packages, single(provider), single(needy, requiresPackage(provider)))
		good, along = append(good, needy), append(along, provider)
	}
	for i := range 2 {
		provider, needy, kind := fmt.Sprintf("supply-%d", i), fmt.Sprintf("needs-api-%d", i), fmt.Sprintf("Supply%d", i)
		packages = append(packages, single(provider, gvk("olm.gvk", kind)), single(needy, gvk("olm.gvk.required", kind)))
		good, along = append(good, needy), append(along, provider)
	}
	packages, good = append(packages, single("needs-plain", gvk("olm.gvk.required", "Plain03"))), append(good, "needs-plain")
	packages = append(packages, single("x-lonely", requiresPackage("nowhere")), single("x-twin", gvk("olm.gvk", "Plain02")), single("x-offbeat"))
	w.server.Serve(packages...)
	for _, name := range good {
		w.Create(w.subscription(name, name))
	}
	w.Create(w.subscription("x-lonely", "x-lonely"), w.subscription("x-twin", "x-twin"),
		w.subscription("x-offbeat", "x-offbeat", func(s *operatorsv1alpha1.SubscriptionSpec) { s.Channel = "gone" }))
	w.supervise()

	for _, name := range slices.Concat(good, along) {
		w.succeed(name + ".v1")
	}
	for _, name := range good {
		w.settled(name, name+".v1")
	}
	for _, name := range along {
		sub := w.settled(fmt.Sprintf("%s-stable-shop-%s", name, w.Namespace), name+".v1")
		if sub.Annotations["olm.generated-by"] == "" {
			t.Errorf("Subscription %s does not say which plan made it", sub.Name)
		}
	}
	const unsatisfiable = "ConstraintsNotSatisfiable"
	w.says("x-lonely", unresolved, unsatisfiable, "with package: nowhere and with version in range: >=1.0.0")
	w.says("x-twin", unresolved, unsatisfiable, "Plain02 (suite.example/v1)")
	w.says("x-offbeat", unresolved, unsatisfiable, "no operators found in channel gone of package x-offbeat in the catalog referenced by subscription x-offbeat")
	list := &operatorsv1alpha1.SubscriptionList{}
	if err := w.List(t.Context(), list, client.InNamespace(w.Namespace)); err != nil {
		t.Fatal(err)
	}
	for i := range list.Items {
		sub := &list.Items[i]
		failed := sub.Status.GetCondition(unresolved)
		if bad := strings.HasPrefix(sub.Name, "x-"); bad != (failed.Status == "True") || bad != (sub.Status.InstalledCSV == "") {
			t.Errorf("%s: installed %q, %s", sub.Name, sub.Status.InstalledCSV, failed.Message)
		} else if bad && (!strings.Contains(failed.Message, "subscription "+sub.Name+" exists") || sub.Status.GetCondition(api.ConditionBlocked).Message == "") {
			t.Errorf("%s has no cause or no remedy: %s", sub.Name, failed.Message)
		}
	}
	if want := len(good) + len(along) + 3; len(list.Items) != want {
		t.Errorf("%d Subscriptions, want %d", len(list.Items), want)
	}
	w.rests()
}

// rests checks that a reconcile without changes writes nothing.
func (w *world) rests() {
	w.T.Helper()
	revisions := func() map[string]string {
		found := map[string]string{}
		subs, plans := &operatorsv1alpha1.SubscriptionList{}, w.plans()
		if err := w.List(w.T.Context(), subs, client.InNamespace(w.Namespace)); err != nil {
			w.T.Fatal(err)
		}
		for i := range subs.Items {
			found["Subscription "+subs.Items[i].Name] = subs.Items[i].ResourceVersion
		}
		for i := range plans {
			found["InstallPlan "+plans[i].Name] = plans[i].ResourceVersion
		}
		return found
	}
	w.Eventually(func(g gomega.Gomega) {
		for _, p := range w.plans() {
			g.Expect(p.Status.Phase).To(gomega.Equal(complete), p.Name)
		}
		for _, name := range w.subscriptions() {
			sub := &operatorsv1alpha1.Subscription{}
			g.Expect(w.Get(w.T.Context(), client.ObjectKey{Namespace: w.Namespace, Name: name}, sub)).To(gomega.Succeed())
			g.Expect(sub.Status.GetCondition(waits).Status).NotTo(gomega.BeEquivalentTo("True"), name)
		}
	}).Should(gomega.Succeed())
	before := revisions()
	// Another Subscription causes a reconcile of the whole namespace, and its condition marks the
	// end.
	w.Create(w.subscription("z-last", "z-last"))
	w.says("z-last", unresolved, "ConstraintsNotSatisfiable", "no operators found in package z-last")
	after := revisions()
	delete(after, "Subscription z-last")
	if diff := cmp.Diff(before, after); diff != "" {
		w.T.Errorf("written though nothing happened (-before +after):\n%s", diff)
	}
}

// TestDependencyIsInstalledAlong has an operator that needs another one, with and without manual
// approval, and from a catalog whose listing has no manifests.
func TestDependencyIsInstalledAlong(t *testing.T) {
	for name, tt := range map[string]struct {
		approval operatorsv1alpha1.Approval
		paged    bool
	}{
		"Automatic": {approval: operatorsv1alpha1.ApprovalAutomatic},
		"Manual":    {approval: operatorsv1alpha1.ApprovalManual},
		"Paged":     {approval: operatorsv1alpha1.ApprovalAutomatic, paged: true},
	} {
		t.Run(name, func(t *testing.T) {
			approval := tt.approval
			w := newWorld(t)
			if tt.paged {
				w.server.Extend(true)
				w.server.Stop()
				w.server.Restart()
			}
			w.server.Serve(single("crate", requiresPackage("tray")), single("tray"))
			parent := w.subscription("my-crate", "crate", func(s *operatorsv1alpha1.SubscriptionSpec) { s.InstallPlanApproval = approval })
			w.Create(parent)
			w.supervise()
			if approval == operatorsv1alpha1.ApprovalManual {
				p := w.onlyPlan(asking)
				if subs := w.subscriptions(); len(subs) != 1 {
					t.Errorf("Subscriptions %v before anybody approved", subs)
				}
				w.approve(p.Name)
			}
			p := w.onlyPlan(complete)
			if diff := cmp.Diff([]string{"crate.v1", "tray.v1"}, p.Spec.ClusterServiceVersionNames); diff != "" {
				t.Errorf("versions (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff([]string{"Subscription my-crate " + string(parent.UID)}, owners(p)); diff != "" {
				t.Errorf("owners (-want +got):\n%s", diff)
			}
			var kinds []string
			for _, s := range p.Status.Plan {
				kinds = append(kinds, s.Resource.Kind)
			}
			if diff := cmp.Diff([]string{"ClusterServiceVersion", "ClusterServiceVersion", "Subscription"}, kinds); diff != "" {
				t.Errorf("steps (-want +got):\n%s", diff)
			}
			w.succeed("crate.v1")
			w.succeed("tray.v1")
			w.settled("my-crate", "crate.v1")
			generated := "tray-stable-shop-" + w.Namespace
			sub := w.settled(generated, "tray.v1")
			if sub.Status.InstallPlanRef == nil || sub.Status.InstallPlanRef.UID != p.UID || sub.Annotations["olm.generated-by"] != p.Name || sub.Labels["olm.managed"] != "true" {
				t.Errorf("annotations %v, labels %v, plan %+v", sub.Annotations, sub.Labels, sub.Status.InstallPlanRef)
			}
			want := &operatorsv1alpha1.SubscriptionSpec{
				CatalogSource: "shop", CatalogSourceNamespace: w.Namespace, Package: "tray", Channel: "stable", StartingCSV: "tray.v1",
				InstallPlanApproval: operatorsv1alpha1.ApprovalAutomatic,
			}
			if diff := cmp.Diff(want, sub.Spec); diff != "" {
				t.Errorf("generated Subscription (-want +got):\n%s", diff)
			}
			// From now on it gets updates like any other.
			second := entry("tray.v2", "2.0.0")
			second.Replaces = "tray.v1"
			w.server.Serve(single("crate", requiresPackage("tray")), fakecatalog.Simple("tray", entry("tray.v1", "1.0.0"), second))
			w.succeed("tray.v2")
			w.settled(generated, "tray.v2")
			if n := len(w.plans()); n != 2 {
				t.Errorf("%d plans, want 2", n)
			}
			if paged := w.server.Pages() > 0 && w.server.Listed() == 0; paged != tt.paged {
				t.Errorf("%d pages and %d whole lists were read", w.server.Pages(), w.server.Listed())
			}
		})
	}
}

// TestLostDependencyComesBack deletes a dependency of an operator, and the Subscription that was
// generated for it.
func TestLostDependencyComesBack(t *testing.T) {
	w := newWorld(t)
	w.server.Serve(single("crate", requiresPackage("tray")), single("tray"))
	w.Create(w.subscription("my-crate", "crate"))
	w.supervise()
	w.succeed("crate.v1")
	w.succeed("tray.v1")
	generated := "tray-stable-shop-" + w.Namespace
	w.settled(generated, "tray.v1")
	before := w.settled("my-crate", "crate.v1")
	w.patch(before, `{"spec":{"installPlanApproval":"Manual"}}`)

	tray := &operatorsv1alpha1.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "tray.v1"}}
	sub := &operatorsv1alpha1.Subscription{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: generated}}
	for _, object := range []client.Object{sub, tray} {
		if err := w.Delete(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	w.patch(tray, `{"metadata":{"finalizers":null}}`)

	asked := w.says("my-crate", waits, string(asking), "")
	if s := asked.Status; s.State != latest || s.CurrentCSV != "crate.v1" || s.InstalledCSV != "crate.v1" || s.InstallPlanRef.UID == before.Status.InstallPlanRef.UID {
		t.Errorf("status while it waits for approval: %+v", s)
	}
	if subs := w.subscriptions(); !slices.Equal(subs, []string{"my-crate"}) {
		t.Errorf("Subscriptions %v before anybody approved", subs)
	}
	w.approve(asked.Status.InstallPlanRef.Name)
	w.succeed("tray.v1")
	w.settled(generated, "tray.v1")
	w.becomes("my-crate", func(sub *operatorsv1alpha1.Subscription) bool {
		s := sub.Status
		return s.State == latest && s.InstalledCSV == "crate.v1" && s.InstallPlanRef.UID == before.Status.InstallPlanRef.UID && s.GetCondition(waits).Status != "True"
	})
	if n := len(w.plans()); n != 2 {
		t.Errorf("%d plans, want 2", n)
	}
	w.rests()
}

// subscriptions returns the names of the Subscriptions of the namespace.
func (w *world) subscriptions() []string {
	w.T.Helper()
	list := &operatorsv1alpha1.SubscriptionList{}
	if err := w.List(w.T.Context(), list, client.InNamespace(w.Namespace)); err != nil {
		w.T.Fatal(err)
	}
	var names []string
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	return names
}

// TestAdoption removes from Subscriptions the records of their operators.
func TestAdoption(t *testing.T) {
	w := newWorld(t)
	w.server.Serve(w.lamp(2), single("radio"), fakecatalog.Simple("am", entry("receiver.v1", "1.0.0")), fakecatalog.Simple("fm", entry("receiver.v1", "1.0.0")))
	first := w.subscription("my-lamp", "lamp")
	w.Create(first)
	stop := w.supervise()
	p := w.onlyPlan(complete)
	w.succeed("lamp.v2")
	w.settled("my-lamp", "lamp.v2")

	// The status is lost, as in a backup.
	stop()
	lost := w.becomes("my-lamp", func(*operatorsv1alpha1.Subscription) bool { return true })
	lost.Status = operatorsv1alpha1.SubscriptionStatus{LastUpdated: metav1.Now()}
	if err := w.Status().Update(t.Context(), lost); err != nil {
		t.Fatal(err)
	}
	stop = w.supervise()
	if found := w.settled("my-lamp", "lamp.v2"); found.Status.InstallPlanRef == nil || found.Status.InstallPlanRef.UID != p.UID {
		t.Errorf("plan %+v, want %s", found.Status.InstallPlanRef, p.Name)
	}

	// The Subscription is deleted and recreated under another name.
	if err := w.Delete(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	w.Create(w.subscription("anew", "lamp"))
	w.settled("anew", "lamp.v2")
	for _, name := range []string{"my-lamp", "anew"} {
		w.Eventually(func() int { return w.events(name)["Adopted"] }).Should(gomega.Equal(1), name)
	}

	// Another client installed an operator, without a record.
	w.foundling("radio.v1")
	w.Create(w.subscription("my-radio", "radio"))
	w.settled("my-radio", "radio.v1")

	// This version could be of either package.
	stop()
	am, fm := w.subscription("my-am", "am"), w.subscription("my-fm", "fm")
	w.Create(am, fm)
	w.foundling("receiver.v1")
	w.supervise()
	for _, name := range []string{"my-am", "my-fm"} {
		w.says(name, unresolved, "ConstraintsNotSatisfiable", "clusterserviceversion receiver.v1 exists and is not referenced by a subscription, subscription "+name+" exists")
		w.says(name, api.ConditionBlocked, api.ReasonVersionAmbiguous, "receiver.v1 can belong to any of the subscriptions my-am, my-fm")
	}
	if err := w.Delete(t.Context(), fm); err != nil {
		t.Fatal(err)
	}
	w.settled("my-am", "receiver.v1")
	// The first plan may have been deleted with its owner.
	for _, other := range w.plans() {
		if other.UID != p.UID {
			t.Errorf("plan %s installs %v, though everything was there", other.Name, other.Spec.ClusterServiceVersionNames)
		}
	}
}

// foundling creates a version without a record of its origin.
func (w *world) foundling(name string) {
	w.T.Helper()
	csv := &operatorsv1alpha1.ClusterServiceVersion{}
	if err := json.Unmarshal([]byte(entry(name, "1.0.0").Objects[0]), csv); err != nil {
		w.T.Fatal(err)
	}
	csv.Namespace = w.Namespace
	csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs = []operatorsv1alpha1.StrategyDeploymentSpec{}
	w.Create(csv)
	w.succeed(name)
}

// TestOperatorGroups checks that Subscriptions report when there is not exactly one OperatorGroup,
// and that nothing else changes.
func TestOperatorGroups(t *testing.T) {
	w := newWorld(t)
	w.Create(w.subscription("my-lamp", "lamp"))
	w.supervise()
	w.succeed("lamp.v2")
	w.settled("my-lamp", "lamp.v2")
	if err := w.Delete(t.Context(), w.group("group")); err != nil {
		t.Fatal(err)
	}
	const prevented = "ErrorPreventedResolution"
	stays := func(sub *operatorsv1alpha1.Subscription) {
		t.Helper()
		if sub.Status.State != latest || sub.Status.InstalledCSV != "lamp.v2" || sub.Status.CurrentCSV != "lamp.v2" || sub.Status.InstallPlanRef == nil {
			t.Errorf("status %+v", sub.Status)
		}
	}
	stays(w.says("my-lamp", unresolved, prevented, "expected 1 OperatorGroup in the namespace, found 0"))
	w.says("my-lamp", api.ConditionBlocked, api.ReasonOperatorGroupInvalid, "create an OperatorGroup in namespace "+w.Namespace)
	w.Create(w.subscription("new", "absent"))
	w.says("new", unresolved, prevented, "expected 1 OperatorGroup in the namespace, found 0")
	w.Create(w.group("one"), w.group("two"))
	stays(w.says("my-lamp", unresolved, prevented, "expected 1 OperatorGroup in the namespace, found 2"))
	w.says("my-lamp", api.ConditionBlocked, api.ReasonOperatorGroupInvalid, "delete all but one of the OperatorGroups one, two of namespace "+w.Namespace)
	// For a moment there was one group: publish the update after that.
	w.server.Serve(w.lamp(3))
	w.Create(w.subscription("newer", "absent"))
	w.says("newer", unresolved, prevented, "expected 1 OperatorGroup in the namespace, found 2")
	if n := len(w.plans()); n != 1 {
		t.Errorf("%d plans, want 1", n)
	}
	if err := w.Delete(t.Context(), w.group("two")); err != nil {
		t.Fatal(err)
	}
	w.succeed("lamp.v3")
	w.settled("my-lamp", "lamp.v3")
}

// TestDeprecations checks that Subscriptions report the deprecations of installed packages,
// channels and versions, while they apply.
func TestDeprecations(t *testing.T) {
	w := newWorld(t)
	deprecated := w.lamp(2)
	deprecated.Deprecation, deprecated.Channels[0].Deprecation = "use the radio", "no longer cared for"
	w.server.Serve(deprecated)
	w.Create(w.subscription("my-lamp", "lamp", func(s *operatorsv1alpha1.SubscriptionSpec) { s.Channel = "stable" }))
	w.supervise()
	w.succeed("lamp.v2")
	const reason = "" // as with OLM
	w.says("my-lamp", operatorsv1alpha1.SubscriptionPackageDeprecated, reason, "olm.package/lamp: use the radio")
	w.says("my-lamp", operatorsv1alpha1.SubscriptionChannelDeprecated, reason, "olm.channel/stable: no longer cared for")
	sub := w.says("my-lamp", operatorsv1alpha1.SubscriptionDeprecated, reason, "olm.package/lamp: use the radio; olm.channel/stable: no longer cared for")
	if c := sub.Status.GetCondition(operatorsv1alpha1.SubscriptionBundleDeprecated); c.Status == "True" {
		t.Errorf("condition %+v", c)
	}
	// A Subscription without a channel has no condition about channels.
	w.patch(sub, `{"spec":{"channel":null}}`)
	w.becomes("my-lamp", func(sub *operatorsv1alpha1.Subscription) bool {
		return sub.Status.GetCondition(operatorsv1alpha1.SubscriptionChannelDeprecated).Status != "True" &&
			sub.Status.GetCondition(operatorsv1alpha1.SubscriptionDeprecated).Message == "olm.package/lamp: use the radio"
	})
	w.server.Serve(w.lamp(2))
	w.becomes("my-lamp", func(sub *operatorsv1alpha1.Subscription) bool {
		return sub.Status.GetCondition(operatorsv1alpha1.SubscriptionPackageDeprecated).Status != "True" &&
			sub.Status.GetCondition(operatorsv1alpha1.SubscriptionDeprecated).Status != "True"
	})
}

// TestGlobalCatalogs checks that an OperatorGroup can exclude the catalogs of the global namespace.
func TestGlobalCatalogs(t *testing.T) {
	w := newWorld(t)
	w.global = controlplane.Namespace(t)
	server := fakecatalog.Start(t, single("globe"), single("orbit"))
	shop := w.catalog("everywhere", server.Address())
	shop.SetNamespace(w.global)
	everywhere := func(s *operatorsv1alpha1.SubscriptionSpec) {
		s.CatalogSource, s.CatalogSourceNamespace = "everywhere", w.global
	}
	w.Create(shop, w.subscription("my-globe", "globe", everywhere))
	w.supervise()
	w.succeed("globe.v1")
	sub := w.settled("my-globe", "globe.v1")
	if h := sub.Status.CatalogHealth; len(h) != 2 {
		t.Errorf("catalog health %+v", h)
	}
	group := &operatorsv1.OperatorGroup{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "group"}}
	w.patch(group, `{"metadata":{"annotations":{"olm.operatorframework.io/exclude-global-namespace-resolution":"true"}}}`)
	w.Create(w.subscription("my-orbit", "orbit", everywhere))
	w.says("my-orbit", unresolved, "ConstraintsNotSatisfiable", "no operators found from catalog everywhere in namespace "+w.global)
	w.says("my-orbit", api.ConditionBlocked, api.ReasonCatalogExcluded, "OperatorGroup group excludes the catalogs of namespace "+w.global+" by its annotation olm.operatorframework.io/exclude-global")
	sub = w.says("my-globe", unhealthy, "UnhealthyCatalogSourceFound", "targeted catalogsource "+w.global+"/everywhere missing")
	if sub.Status.InstalledCSV != "globe.v1" || sub.Status.State != latest || len(sub.Status.CatalogHealth) != 1 {
		t.Errorf("status %+v", sub.Status)
	}
	w.patch(group, `{"metadata":{"annotations":null}}`)
	w.succeed("orbit.v1")
	w.settled("my-orbit", "orbit.v1")
}
