package subscription

import (
	"strconv"
	"testing"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/plansteps"
	"github.com/chandlery/chandlery/supervisor/transitionlog"
)

// TestOwnersOfPlansOfOthers checks that a plan of another lifecycle manager, with every
// Subscription as an owner, does not change.
func TestOwnersOfPlansOfOthers(t *testing.T) {
	a, b := subscription("a", "lamp"), subscription("b", "tray")
	a.UID, b.UID = "a", "b"
	p := installPlan("install-abcde", "lamp.v1", operatorsv1alpha1.InstallPlanPhaseComplete, 1, a, b)
	p.UID = "p"
	p.Spec.ClusterServiceVersionNames = []string{"lamp.v1", "tray.v1"}
	a.Status.InstallPlanRef = &corev1.ObjectReference{Name: p.Name, UID: p.UID}
	b.Status.InstallPlanRef = &corev1.ObjectReference{Name: "install-later", UID: "later"}
	o := &namespaceState{subscriptions: []*operatorsv1alpha1.Subscription{a, b}}
	if s := surplusOwners(o.subscriptions, p); len(s) > 0 {
		t.Fatal("at first none is surplus")
	}
	for _, sub := range missingOwners(o, p) { // what ensureOwners writes
		metav1.SetMetaDataAnnotation(&p.ObjectMeta, api.PrefixServes+string(sub.UID), sub.Name)
	}
	if s := surplusOwners(o.subscriptions, p); len(s) > 0 {
		t.Errorf("owners %v are taken from the plan of another lifecycle manager", s)
	}
}

// TestStrippedPlanIsNotSuperseded clears the status of the plan that installed the existing version.
func TestStrippedPlanIsNotSuperseded(t *testing.T) {
	lamp := subscription("my", "lamp", knows("lamp.v2", "lamp.v2"))
	p := installPlan("p", "lamp.v2", "", 1, lamp)
	p.Status = operatorsv1alpha1.InstallPlanStatus{}
	o := observed(read(t), lamp).with([]*operatorsv1alpha1.ClusterServiceVersion{version("lamp.v2", "lamp", operatorsv1alpha1.CSVPhaseSucceeded)}, p)
	d := decided(t, o)
	t.Logf("decision: %s", d[0].String())
	for _, gone := range (&planState{namespaceState: o, decisions: d, ensured: nil}).superseded() {
		t.Errorf("plan %s, which brought what is installed, is deleted as superseded", gone.Name)
	}
}

// TestStrippedPlanIsMadeAgain clears the status of a plan while its version waits for parts.
func TestStrippedPlanIsMadeAgain(t *testing.T) {
	lamp := subscription("my", "lamp", knows("lamp.v2", ""))
	p := installPlan("p", "lamp.v2", "", 1, lamp)
	p.Status = operatorsv1alpha1.InstallPlanStatus{}
	o := observed(read(t), lamp).with([]*operatorsv1alpha1.ClusterServiceVersion{version("lamp.v2", "lamp", operatorsv1alpha1.CSVPhasePending)}, p)
	d := decided(t, o)[0]
	if len(d.choices()) == 0 {
		t.Errorf("nobody writes the steps of the plan again: %s", d.String())
	}
}

// TestVersionThatAPlanBrought has a Subscription for a version that the plan of another installed and
// that is not ready yet. It needs no plan of its own.
func TestVersionThatAPlanBrought(t *testing.T) {
	const complete, installing = operatorsv1alpha1.InstallPlanPhaseComplete, operatorsv1alpha1.InstallPlanPhaseInstalling
	because := func(reason operatorsv1alpha1.ConditionReason) func(*operatorsv1alpha1.ClusterServiceVersion) {
		return func(csv *operatorsv1alpha1.ClusterServiceVersion) { csv.Status.Reason = reason }
	}
	another := subscription("another", "fan")
	for name, tc := range map[string]struct {
		reason operatorsv1alpha1.ConditionReason
		plan   *operatorsv1alpha1.InstallPlan
		again  bool
	}{
		"carried out for another":             {reason: operatorsv1alpha1.CSVReasonRequirementsNotMet, plan: installPlan("p", "lamp.v2", complete, 1, another)},
		"being carried out for another":       {reason: operatorsv1alpha1.CSVReasonRequirementsNotMet, plan: installPlan("p", "lamp.v2", installing, 1, another)},
		"brought an older version":            {reason: operatorsv1alpha1.CSVReasonRequirementsNotMet, plan: installPlan("p", "lamp.v1", complete, 1, another), again: true},
		"plan gone, requirements not met":     {reason: operatorsv1alpha1.CSVReasonRequirementsNotMet, again: true},
		"plan gone, requirements not checked": {reason: operatorsv1alpha1.CSVReasonRequirementsUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			var plans []*operatorsv1alpha1.InstallPlan
			if tc.plan != nil {
				plans = append(plans, tc.plan)
			}
			o := observed(read(t), subscription("my", "lamp")).with([]*operatorsv1alpha1.ClusterServiceVersion{version("lamp.v2", "lamp", pending, because(tc.reason))}, plans...)
			if d := decided(t, o)[0]; (len(d.choices()) > 0) != tc.again {
				t.Errorf("a plan for it is made: %t, want %t: %s", !tc.again, tc.again, d.String())
			}
		})
	}
}

// TestPlanOfAFormerPackage has a Subscription that asks for another package now. Its status still
// refers to the plan of the former one. That plan must not get the label of the new package: it
// would count as a plan for it.
func TestPlanOfAFormerPackage(t *testing.T) {
	sub := subscription("my", "lamp")
	p := installPlan("install-abcdefghij", "tray.v1", operatorsv1alpha1.InstallPlanPhaseRequiresApproval, 1, sub)
	p.UID, p.Namespace = "p", sub.Namespace
	p.Annotations = map[string]string{api.AnnotationApproval: "Manual", api.PrefixServes + string(sub.UID): sub.Name}
	p.Labels = map[string]string{plansteps.ComponentLabel("tray", p.Namespace): ""}
	sub.Status.InstallPlanRef = &corev1.ObjectReference{Name: p.Name, UID: p.UID}
	o := &namespaceState{subscriptions: []*operatorsv1alpha1.Subscription{sub}}
	if lost := missingOwners(o, p); len(lost) > 0 {
		t.Error("the plan counts as one that has lost the label of the package lamp")
	}
}

// TestInterrupted has a Subscription whose status refers to a deleted plan. Parts are missing only
// if the plan had begun and was not complete.
func TestInterrupted(t *testing.T) {
	const missing = transitionlog.PhaseMissing
	for name, tc := range map[string]struct {
		phases []string
		// untold are phases that the plan entered while no supervisor ran.
		untold []string
		want   bool
	}{
		"done, not told":             {phases: []string{"Installing"}, untold: []string{"Installing", "Complete", "Failed"}},
		"begun, not told":            {phases: []string{"RequiresApproval"}, untold: []string{"RequiresApproval", "Installing"}, want: true},
		"nothing told":               {},
		"waited for approval":        {phases: []string{"Planning", "RequiresApproval", missing}},
		"begun":                      {phases: []string{"Planning", "Installing", missing}, want: true},
		"begun and failed":           {phases: []string{"Installing", "Failed"}, want: true},
		"carried out":                {phases: []string{"Installing", "Complete", missing}},
		"approved, begun, then gone": {phases: []string{"RequiresApproval", "Installing"}, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			sub := subscription("my", "lamp")
			sub.Status.InstallPlanRef = &corev1.ObjectReference{Name: "p", UID: "p"}
			// Transitions of another plan do not count.
			entries := transitionlog.Log{{Plan: "q", UID: "q", Phase: "Installing"}, {Plan: "q", UID: "q", Phase: "Complete"}}
			for _, phase := range tc.phases {
				entries = append(entries, transitionlog.Transition{Plan: "p", UID: "p", Phase: phase})
			}
			metav1.SetMetaDataAnnotation(&sub.ObjectMeta, api.AnnotationTransitions, entries.Text())
			var tr tracker
			for i, phase := range tc.untold {
				p := installPlan("p", "lamp.v2", operatorsv1alpha1.InstallPlanPhase(phase), 1, sub)
				p.UID, p.ResourceVersion = "p", strconv.Itoa(i+1)
				tr.add(p, at(i).Time)
			}
			o := &namespaceState{unrecorded: unrecordedPhases([]*operatorsv1alpha1.Subscription{sub}, tr.since)}
			if got := o.plans.interrupted(sub, o.unrecorded); got != tc.want {
				t.Errorf("interrupted: %t, want %t", got, tc.want)
			}
		})
	}
}

// TestAttempts checks that the latest attempt counts, even if the first was collected.
func TestAttempts(t *testing.T) {
	a := &desiredPlan{versions: []plansteps.Identity{{Package: "lamp", Bundle: "lamp.v2"}}}
	o := &namespaceState{plans: planSet{}}
	for _, tt := range []struct{ made, want int }{{0, 1}, {3, 3}, {2, 3}, {11, 11}} {
		if tt.made > 0 {
			o.plans[plansteps.Name(a.versions, tt.made)] = nil
		}
		if got := o.plans.latestAttempt(a.versions); got != tt.want {
			t.Errorf("after attempt %d was made the latest is %d, want %d", tt.made, got, tt.want)
		}
	}
}
