package suite_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/onsi/gomega"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/api"
)

const (
	asking     = operatorsv1alpha1.InstallPlanPhaseRequiresApproval
	complete   = operatorsv1alpha1.InstallPlanPhaseComplete
	waits      = operatorsv1alpha1.SubscriptionInstallPlanPending
	unresolved = operatorsv1alpha1.SubscriptionResolutionFailed
	unhealthy  = operatorsv1alpha1.SubscriptionCatalogSourcesUnhealthy
	upgrading  = operatorsv1alpha1.SubscriptionStateUpgradePending
	latest     = operatorsv1alpha1.SubscriptionStateAtLatest
)

// owners returns the owners of a plan.
func owners(p *operatorsv1alpha1.InstallPlan) []string {
	var names []string
	for _, ref := range p.OwnerReferences {
		names = append(names, ref.Kind+" "+ref.Name+" "+string(ref.UID))
		if ref.Controller == nil || *ref.Controller || ref.BlockOwnerDeletion == nil || *ref.BlockOwnerDeletion {
			names[len(names)-1] += " controls or blocks"
		}
	}
	slices.Sort(names)
	return names
}

// TestSubscriptionInstallsAndUpdates installs a first version with manual approval, and then the
// next one.
func TestSubscriptionInstallsAndUpdates(t *testing.T) {
	w := newWorld(t)
	w.Create(w.subscription("my-lamp", "lamp", manual, start("lamp.v1")))
	w.supervise()
	sub := w.says("my-lamp", waits, string(asking), "")
	first := w.onlyPlan(asking)
	if diff := cmp.Diff([]string{"Subscription my-lamp " + string(sub.UID)}, owners(first)); diff != "" {
		t.Errorf("owners (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{"olm.managed": "true", "operators.coreos.com/lamp." + w.Namespace: ""}, first.Labels); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
	want := operatorsv1alpha1.InstallPlanSpec{ClusterServiceVersionNames: []string{"lamp.v1"}, Approval: operatorsv1alpha1.ApprovalManual, Generation: 1}
	if diff := cmp.Diff(want, first.Spec); diff != "" {
		t.Errorf("plan (-want +got):\n%s", diff)
	}
	if sub.Status.State != upgrading || sub.Status.CurrentCSV != "lamp.v1" || sub.Status.InstalledCSV != "" || sub.Status.InstallPlanRef.Name != first.Name || sub.Status.InstallPlanRef.UID != first.UID || sub.Status.InstallPlanGeneration != 1 {
		t.Errorf("status %+v", sub.Status)
	}
	if h := sub.Status.CatalogHealth; len(h) != 1 || !h[0].Healthy || h[0].CatalogSourceRef.Name != "shop" {
		t.Errorf("catalog health %+v", h)
	}

	w.approve(first.Name)
	w.succeed("lamp.v1")
	// The next version waits for its own approval.
	sub = w.becomes("my-lamp", func(sub *operatorsv1alpha1.Subscription) bool {
		return sub.Status.InstalledCSV == "lamp.v1" && sub.Status.CurrentCSV == "lamp.v2" && sub.Status.GetCondition(waits).Reason == string(asking)
	})
	if sub.Status.State != upgrading || sub.Status.InstallPlanGeneration != 2 || sub.Status.InstallPlanRef.Name == first.Name {
		t.Errorf("status %+v", sub.Status)
	}
	w.approve(sub.Status.InstallPlanRef.Name)
	w.succeed("lamp.v2")
	w.becomes("my-lamp", func(sub *operatorsv1alpha1.Subscription) bool {
		return sub.Status.State == latest && sub.Status.InstalledCSV == "lamp.v2" && sub.Status.GetCondition(waits).Status != "True"
	})
	csv := &operatorsv1alpha1.ClusterServiceVersion{}
	if err := w.Get(t.Context(), client.ObjectKey{Namespace: w.Namespace, Name: "lamp.v2"}, csv); err != nil || csv.Spec.Replaces != "lamp.v1" {
		t.Errorf("replaces %q, error %v", csv.Spec.Replaces, err)
	}

	// A new version appears in the catalog.
	w.server.Serve(w.lamp(3))
	w.becomes("my-lamp", func(sub *operatorsv1alpha1.Subscription) bool {
		return sub.Status.CurrentCSV == "lamp.v3" && sub.Status.InstallPlanGeneration == 3
	})
	if n := len(w.plans()); n != 3 {
		t.Errorf("%d plans, want 3", n)
	}
}

// TestTroublesStayWhereTheyAre has invalid Subscriptions beside a valid one, also for the same
// package.
func TestTroublesStayWhereTheyAre(t *testing.T) {
	w := newWorld(t)
	w.Create(
		w.catalog("dead", "127.0.0.1:1"),
		w.subscription("a-catalog", "lamp", func(s *operatorsv1alpha1.SubscriptionSpec) { s.CatalogSource = "gone" }),
		w.subscription("a-channel", "lamp", func(s *operatorsv1alpha1.SubscriptionSpec) { s.Channel = "gone" }),
		w.subscription("a-dead", "other", func(s *operatorsv1alpha1.SubscriptionSpec) { s.CatalogSource = "dead" }),
		w.subscription("a-fan", "fan"),
		w.subscription("a-package", "gone"),
		w.subscription("good", "lamp"),
	)
	w.supervise()
	const unsatisfiable = "ConstraintsNotSatisfiable"
	w.says("a-catalog", unresolved, unsatisfiable, "no operators found from catalog gone in namespace "+w.Namespace+" referenced by subscription a-catalog")
	w.says("a-catalog", unhealthy, "UnhealthyCatalogSourceFound", "targeted catalogsource "+w.Namespace+"/gone missing")
	w.says("a-channel", unresolved, unsatisfiable, "no operators found in channel gone of package lamp in the catalog referenced by subscription a-channel, subscription a-channel exists")
	w.says("a-channel", api.ConditionBlocked, api.ReasonChannelNotFound, "set spec.channel to one of stable")
	w.says("a-package", unresolved, unsatisfiable, "no operators found in package gone in the catalog referenced by subscription a-package")
	w.says("a-dead", unresolved, "ErrorPreventedResolution", "error using catalogsource "+w.Namespace+"/dead")
	w.says("a-fan", operatorsv1alpha1.SubscriptionBundleUnpackFailed, "BundleUnpackFailed", "registry.example/fan:1")
	w.says("a-channel", unresolved, unsatisfiable, "no operators found in channel gone")
	w.succeed("lamp.v2")
	w.becomes("good", func(sub *operatorsv1alpha1.Subscription) bool {
		return sub.Status.State == latest && sub.Status.GetCondition(unresolved).Status != "True"
	})

	// A fixed Subscription continues without a restart.
	sub := w.becomes("a-package", func(*operatorsv1alpha1.Subscription) bool { return true })
	w.server.Serve(w.lamp(2), renamed(w.lamp(1), "gone"))
	w.becomes(sub.Name, func(sub *operatorsv1alpha1.Subscription) bool {
		return sub.Status.CurrentCSV == "gone.v1" && sub.Status.GetCondition(unresolved).Status != "True"
	})
}

func TestCatalogThatGoesAwayGoesOnServing(t *testing.T) {
	w := newWorld(t)
	w.server.Serve(w.lamp(2), renamed(w.lamp(1), "radio"))
	w.Create(w.subscription("early", "lamp", manual))
	w.supervise()
	w.says("early", waits, string(asking), "")
	w.server.Stop()
	sub := w.says("early", unhealthy, "UnhealthyCatalogSourceFound", "targeted catalogsource "+w.Namespace+"/shop unhealthy")
	if sub.Status.CurrentCSV != "lamp.v2" || sub.Status.GetCondition(unresolved).Status == "True" || sub.Status.GetCondition(waits).Status != "True" {
		t.Errorf("status %+v", sub.Status)
	}
	// Without manifests there is only a plan, and the condition states how it continues.
	w.Create(w.subscription("late", "radio"))
	late := w.says("late", operatorsv1alpha1.SubscriptionBundleUnpackFailed, "EnsureInstallPlanFailed", "error ensuring InstallPlan: ")
	w.says("late", api.ConditionBlocked, api.ReasonCatalogUnavailable, "the resolution continues when the catalog answers")
	if late.Status.State != operatorsv1alpha1.SubscriptionStateNone || late.Status.CurrentCSV != "" || late.Status.InstalledCSV != "" {
		t.Errorf("status %+v", late.Status)
	}
	w.says("late", waits, "Planning", "")
	w.server.Restart()
	w.becomes("early", func(sub *operatorsv1alpha1.Subscription) bool {
		return sub.Status.GetCondition(unhealthy).Status == "False"
	})
	w.succeed("radio.v1")
	w.settled("late", "radio.v1")
}

// TestPlanIsMadeGood recreates the state after a process died between the creation of a plan and
// its steps. It then deletes the plan.
func TestPlanIsMadeGood(t *testing.T) {
	w := newWorld(t)
	w.Create(w.subscription("my-lamp", "lamp", manual))
	stop := w.supervise()
	w.onlyPlan(asking)
	stop()
	first := w.onlyPlan(asking)
	emptied := first.DeepCopy()
	emptied.Status = operatorsv1alpha1.InstallPlanStatus{Plan: []*operatorsv1alpha1.Step{}, CatalogSources: []string{}}
	if err := w.Status().Update(t.Context(), emptied); err != nil {
		t.Fatal(err)
	}
	w.supervise()
	healed := w.onlyPlan(asking)
	if diff := cmp.Diff(first.Status.Plan, healed.Status.Plan); diff != "" || healed.UID != first.UID {
		t.Errorf("the same plan %v, steps (-want +got):\n%s", healed.UID == first.UID, diff)
	}

	if err := w.Delete(t.Context(), healed); err != nil {
		t.Fatal(err)
	}
	sub := w.becomes("my-lamp", func(sub *operatorsv1alpha1.Subscription) bool {
		return sub.Status.InstallPlanRef != nil && sub.Status.InstallPlanRef.UID != first.UID && sub.Status.GetCondition(waits).Reason == string(asking)
	})
	again := w.onlyPlan(asking)
	if again.Name != first.Name+"-2" || again.UID != sub.Status.InstallPlanRef.UID || again.Spec.Generation <= first.Spec.Generation {
		t.Errorf("plan %s of generation %d, Subscription refers to %+v", again.Name, again.Spec.Generation, sub.Status.InstallPlanRef)
	}
}

// TestSharedPlan has two equal Subscriptions, and one for another package.
func TestSharedPlan(t *testing.T) {
	w := newWorld(t)
	w.server.Serve(w.lamp(2), renamed(w.lamp(1), "radio"))
	first, other := w.subscription("first", "lamp", manual), w.subscription("other", "radio")
	w.Create(first, other)
	w.supervise()
	w.says("first", waits, string(asking), "")
	second := w.subscription("second", "lamp")
	w.Create(second)
	shared := w.says("second", waits, string(asking), "").Status.InstallPlanRef
	w.Eventually(func(g gomega.Gomega) {
		plans := w.plans()
		g.Expect(plans).To(gomega.HaveLen(2))
		for i := range plans {
			p := &plans[i]
			if p.Name == shared.Name {
				g.Expect(owners(p)).To(gomega.Equal([]string{"Subscription first " + string(first.UID), "Subscription second " + string(second.UID)}))
				g.Expect(p.Spec.Approval).To(gomega.Equal(operatorsv1alpha1.ApprovalManual))
				g.Expect(p.Spec.Approved).To(gomega.BeFalse())
				continue
			}
			g.Expect(owners(p)).To(gomega.Equal([]string{"Subscription other " + string(other.UID)}))
			g.Expect(p.Spec.Approval).To(gomega.Equal(operatorsv1alpha1.ApprovalAutomatic))
			g.Expect(p.Spec.Approved).To(gomega.BeTrue())
		}
	}).Should(gomega.Succeed())

	// The last Subscription with manual approval becomes automatic, and the plan is approved.
	w.patch(first, `{"spec":{"installPlanApproval":"Automatic"}}`)
	w.Eventually(func(g gomega.Gomega) {
		p := &operatorsv1alpha1.InstallPlan{}
		g.Expect(w.Get(t.Context(), client.ObjectKey{Namespace: w.Namespace, Name: shared.Name}, p)).To(gomega.Succeed())
		g.Expect(p.Spec.Approved).To(gomega.BeTrue())
		g.Expect(p.OwnerReferences).To(gomega.HaveLen(2))
	}).Should(gomega.Succeed())
}

// TestAnotherProcessGoesOn stops the supervisor while a plan waits.
func TestAnotherProcessGoesOn(t *testing.T) {
	w := newWorld(t)
	w.Create(w.subscription("my-lamp", "lamp", manual))
	stop := w.supervise()
	before := w.onlyPlan(asking)
	if err := w.Delete(t.Context(), w.group("group")); err != nil {
		t.Fatal(err)
	}
	w.approve(before.Name)
	w.says("my-lamp", waits, string(asking), "no operator group found")
	stop()
	w.Create(w.group("group"))
	w.supervise()
	after := w.onlyPlan(complete)
	if after.UID != before.UID || after.Spec.Generation != before.Spec.Generation {
		t.Errorf("plan %s/%d before, %s/%d after", before.UID, before.Spec.Generation, after.UID, after.Spec.Generation)
	}
	w.succeed("lamp.v2")
	w.becomes("my-lamp", func(sub *operatorsv1alpha1.Subscription) bool { return sub.Status.State == latest })
	w.onlyPlan(complete)
}

// TestRemovedVersionIsInstalledAnew deletes an installed version.
func TestRemovedVersionIsInstalledAnew(t *testing.T) {
	w := newWorld(t)
	w.Create(w.subscription("my-lamp", "lamp"))
	w.supervise()
	first := w.onlyPlan(complete)
	w.succeed("lamp.v2")
	w.becomes("my-lamp", func(sub *operatorsv1alpha1.Subscription) bool { return sub.Status.State == latest })
	csv := &operatorsv1alpha1.ClusterServiceVersion{}
	csv.Namespace, csv.Name = w.Namespace, "lamp.v2"
	if err := w.Delete(t.Context(), csv); err != nil {
		t.Fatal(err)
	}
	w.patch(csv, `{"metadata":{"finalizers":null}}`)
	w.Eventually(func(g gomega.Gomega) {
		plans := w.plans()
		g.Expect(plans).To(gomega.HaveLen(2))
		for i := range plans {
			g.Expect(plans[i].Status.Phase).To(gomega.Equal(complete))
		}
	}).Should(gomega.Succeed())
	w.succeed("lamp.v2")
	w.becomes("my-lamp", func(sub *operatorsv1alpha1.Subscription) bool {
		return sub.Status.State == latest && sub.Status.InstallPlanRef.Name == first.Name+"-2"
	})
}
