package subscription

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chandlery/chandlery/supervisor/api"
)

// planAt returns an InstallPlan of a version and phase, with a Subscription as owner.
func planAt(v int, phase operatorsv1alpha1.InstallPlanPhase) *operatorsv1alpha1.InstallPlan {
	return &operatorsv1alpha1.InstallPlan{
		ObjectMeta: metav1.ObjectMeta{
			Name: "install-a", UID: "plan", ResourceVersion: strconv.Itoa(v),
			OwnerReferences: []metav1.OwnerReference{{Kind: operatorsv1alpha1.SubscriptionKind, UID: "sub"}},
		},
		Status: operatorsv1alpha1.InstallPlanStatus{Phase: phase, Plan: []*operatorsv1alpha1.Step{{}}},
	}
}

// showing returns a Subscription whose status shows a version of that plan.
func showing(v int) *operatorsv1alpha1.Subscription {
	sub := &operatorsv1alpha1.Subscription{ObjectMeta: metav1.ObjectMeta{UID: "sub"}}
	sub.Status.InstallPlanRef = &corev1.ObjectReference{UID: "plan", ResourceVersion: strconv.Itoa(v)}
	return sub
}

// phases returns versions with their phases.
func phases(stages []observedStage) []string {
	var list []string
	for _, s := range stages {
		list = append(list, strconv.FormatUint(s.version, 10)+" "+string(s.plan.Status.Phase))
	}
	return list
}

func TestTrackerKeepsStagesInTheirOrder(t *testing.T) {
	t.Parallel()
	versions := []*operatorsv1alpha1.InstallPlan{
		planAt(1, ""), planAt(2, "Installing"), planAt(3, "Installing"), planAt(5, "Failed"),
		planAt(7, "Installing"), planAt(8, "Complete"), planAt(9, "Complete"),
	}
	want := []string{"1 ", "2 Installing", "5 Failed", "7 Installing", "8 Complete"}
	for range 200 {
		tr := &tracker{}
		shuffled := slices.Clone(versions)
		rand.Shuffle(len(shuffled), func(i, k int) { shuffled[i], shuffled[k] = shuffled[k], shuffled[i] })
		for _, p := range shuffled {
			tr.add(p, time.Unix(1, 0))
		}
		tr.setOrdered()
		tr.add(planAt(10, "Complete"), time.Unix(1, 0))
		stages, latest := tr.since("plan", 0)
		if diff := cmp.Diff(want, phases(stages)); diff != "" {
			t.Fatal(diff)
		}
		if latest.version != 10 || latest.plan.Status.Plan != nil {
			t.Fatalf("the latest is %d with steps %v", latest.version, latest.plan.Status.Plan)
		}
	}
}

func TestTrackerDropsShownStages(t *testing.T) {
	t.Parallel()
	tr := &tracker{ordered: true}
	tr.acknowledge(showing(3)) // of an unknown plan
	for i, phase := range []operatorsv1alpha1.InstallPlanPhase{"", "Installing", "Failed", "Installing", "Complete"} {
		tr.add(planAt(i+1, phase), time.Unix(1, 0))
	}
	tr.acknowledge(showing(3))
	stages, _ := tr.since("plan", 0)
	if diff := cmp.Diff([]string{"3 Failed", "4 Installing", "5 Complete"}, phases(stages)); diff != "" {
		t.Error(diff)
	}
	stages, _ = tr.since("plan", 4)
	if diff := cmp.Diff([]string{"5 Complete"}, phases(stages)); diff != "" {
		t.Error(diff)
	}
	tr.acknowledge(showing(5))
	if stages, latest := tr.since("plan", 0); len(stages) != 1 || latest.version != 5 {
		t.Errorf("%v are left", phases(stages))
	}
}

func TestTrackerForgetsDeletedPlans(t *testing.T) {
	t.Parallel()
	tr := &tracker{ordered: true}
	tr.markDeleted(planAt(1, "Failed"), time.Unix(0, 0))
	if _, latest := tr.since("plan", 0); latest == nil {
		t.Error("a plan is forgotten when it is deleted")
	}
	other := planAt(2, "")
	other.UID = "other"
	tr.markDeleted(other, time.Unix(0, 0).Add(deletedPlanTTL+1))
	if _, latest := tr.since("plan", 0); latest != nil {
		t.Error("a deleted plan is remembered for ever")
	}
}

func TestTrackerIsBounded(t *testing.T) {
	t.Parallel()
	tr := &tracker{ordered: true}
	for v := range 3 * maxStages {
		tr.add(planAt(v+1, []operatorsv1alpha1.InstallPlanPhase{"Installing", "Failed"}[v%2]), time.Unix(1, 0))
	}
	if stages, _ := tr.since("plan", 0); len(stages) != maxStages || stages[len(stages)-1].version != 3*maxStages {
		t.Errorf("%d stages are kept", len(stages))
	}
}

// TestTrackerKeepsStagesForStrippedOwners strips the owners of a plan between quick phases.
func TestTrackerKeepsStagesForStrippedOwners(t *testing.T) {
	tr := &tracker{ordered: true}
	mk := func(v int, ph operatorsv1alpha1.InstallPlanPhase, stripped bool) *operatorsv1alpha1.InstallPlan {
		p := planAt(v, ph)
		p.Annotations = map[string]string{api.PrefixServes + "sub": "sub"}
		if stripped {
			p.OwnerReferences = nil
		}
		return p
	}
	tr.add(mk(1, "", false), time.Unix(1, 0))
	tr.acknowledge(showing(1))
	tr.add(mk(2, "Installing", false), time.Unix(1, 0))
	tr.add(mk(3, "Failed", false), time.Unix(1, 0))
	tr.add(mk(4, "Failed", true), time.Unix(1, 0)) // another client strips the owners
	tr.add(mk(5, "Installing", true), time.Unix(1, 0))
	tr.add(mk(6, "Complete", true), time.Unix(1, 0))
	stages, _ := tr.since("plan", 1)
	if diff := cmp.Diff([]string{"2 Installing", "3 Failed", "5 Installing", "6 Complete"}, phases(stages)); diff != "" {
		t.Error(diff)
	}
}

// TestTrackerWaitsForGeneratedSubscriptions checks that the tracker also waits for a Subscription
// that refers to a plan without owning it.
func TestTrackerWaitsForGeneratedSubscriptions(t *testing.T) {
	tr := &tracker{ordered: true}
	for i, ph := range []operatorsv1alpha1.InstallPlanPhase{"Installing", "Failed", "Installing", "Complete"} {
		tr.add(planAt(i+1, ph), time.Unix(1, 0))
	}
	g := showing(1)
	g.UID = "generated"
	tr.acknowledge(g)
	tr.acknowledge(showing(4)) // the owner shows all first, in the same pass
	stages, _ := tr.since("plan", 1)
	if diff := cmp.Diff([]string{"2 Failed", "3 Installing", "4 Complete"}, phases(stages)); diff != "" {
		t.Error(diff)
	}
}
