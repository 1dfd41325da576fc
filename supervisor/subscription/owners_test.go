package subscription

import (
	"testing"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chandlery/chandlery/supervisor/plan"
)

// TestOwnersOfPlansOfOthers shows that a plan which another lifecycle manager made, with
// every Subscription as an owner, is left as it is.
func TestOwnersOfPlansOfOthers(t *testing.T) {
	a, b := subscription("a", "lamp"), subscription("b", "tray")
	a.UID, b.UID = "a", "b"
	p := installPlan("install-abcde", "lamp.v1", operatorsv1alpha1.InstallPlanPhaseComplete, 1, a, b)
	p.UID = "p"
	p.Spec.ClusterServiceVersionNames = []string{"lamp.v1", "tray.v1"}
	a.Status.InstallPlanRef = &corev1.ObjectReference{Name: p.Name, UID: p.UID}
	b.Status.InstallPlanRef = &corev1.ObjectReference{Name: "install-later", UID: "later"}
	o := &observation{subscriptions: []*operatorsv1alpha1.Subscription{a, b}}
	if s := o.surplusOwners(p); len(s) > 0 {
		t.Fatal("at first none is surplus")
	}
	for _, sub := range o.lostOwners(p) { // what ensureOwners writes
		metav1.SetMetaDataAnnotation(&p.ObjectMeta, plan.AnnotationServes+string(sub.UID), sub.Name)
	}
	if s := o.surplusOwners(p); len(s) > 0 {
		t.Errorf("owners %v are taken from the plan of another lifecycle manager", s)
	}
}

// TestWipedPlanIsNotSuperseded wipes the status of the plan that brought what is there.
func TestWipedPlanIsNotSuperseded(t *testing.T) {
	lamp := subscription("my", "lamp", knows("lamp.v2", "lamp.v2"))
	p := installPlan("p", "lamp.v2", "", 1, lamp)
	p.Status = operatorsv1alpha1.InstallPlanStatus{}
	o := observed(read(t), lamp).with([]*operatorsv1alpha1.ClusterServiceVersion{version("lamp.v2", "lamp", operatorsv1alpha1.CSVPhaseSucceeded)}, p)
	d := decided(t, o)
	t.Logf("decision: %s", describe(d[0]))
	for _, gone := range superseded(o, d, nil) {
		t.Errorf("plan %s, which brought what is installed, is deleted as superseded", gone.Name)
	}
}

// TestWipedPlanIsMadeAgain wipes the status of a plan while its version waits for parts.
func TestWipedPlanIsMadeAgain(t *testing.T) {
	lamp := subscription("my", "lamp", knows("lamp.v2", ""))
	p := installPlan("p", "lamp.v2", "", 1, lamp)
	p.Status = operatorsv1alpha1.InstallPlanStatus{}
	o := observed(read(t), lamp).with([]*operatorsv1alpha1.ClusterServiceVersion{version("lamp.v2", "lamp", operatorsv1alpha1.CSVPhasePending)}, p)
	d := decided(t, o)[0]
	if len(d.choices()) == 0 {
		t.Errorf("nobody writes the steps of the plan again: %s", describe(d))
	}
}

// TestAttempts shows that the latest attempt counts, though the first may have been
// collected.
func TestAttempts(t *testing.T) {
	a := &assignment{versions: []plan.Identity{{Package: "lamp", Bundle: "lamp.v2"}}}
	o := &observation{plans: map[string]*operatorsv1alpha1.InstallPlan{}}
	for _, tt := range []struct{ made, want int }{{0, 1}, {3, 3}, {2, 3}, {11, 11}} {
		if tt.made > 0 {
			o.plans[plan.Name(a.versions, tt.made)] = nil
		}
		if got := o.attempts(a); got != tt.want {
			t.Errorf("after attempt %d was made the latest is %d, want %d", tt.made, got, tt.want)
		}
	}
}
