package suite_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chandlery/chandlery/supervisor/plansteps"
	"github.com/chandlery/chandlery/supervisor/transitionlog"
)

// subscribed creates a Subscription that the plan serves.
func (w *world) subscribed() *operatorsv1alpha1.Subscription {
	w.T.Helper()
	sub := &operatorsv1alpha1.Subscription{Spec: &operatorsv1alpha1.SubscriptionSpec{CatalogSource: "shop", CatalogSourceNamespace: "olm", Package: "lamp"}}
	sub.Namespace, sub.Name = w.Namespace, "lamp"
	w.Create(sub)
	w.owners = []metav1.OwnerReference{{
		APIVersion: operatorsv1alpha1.SubscriptionCRDAPIVersion, Kind: operatorsv1alpha1.SubscriptionKind, Name: sub.Name, UID: sub.UID,
		Controller: new(false), BlockOwnerDeletion: new(false),
	}}
	return sub
}

// showStage writes the stage of a plan into the status of the Subscription.
func (w *world) showStage(sub *operatorsv1alpha1.Subscription, p *operatorsv1alpha1.InstallPlan) {
	w.T.Helper()
	stage := transitionlog.StageOf(p)
	sub.Status = operatorsv1alpha1.SubscriptionStatus{LastUpdated: metav1.Now(), InstallPlanRef: &corev1.ObjectReference{
		Namespace: p.Namespace, Name: p.Name, UID: p.UID, ResourceVersion: p.ResourceVersion,
	}}
	if kind := stage.Condition(); kind != "" {
		sub.Status.SetCondition(operatorsv1alpha1.SubscriptionCondition{Type: kind, Status: corev1.ConditionTrue, Reason: stage.Reason})
	}
	if err := w.Status().Update(w.T.Context(), sub); err != nil {
		w.T.Fatal(err)
	}
}

// TestNextPhaseWaitsForTheSubscription checks that each phase stays until the Subscription shows
// it, and that the work of a phase does not wait.
func TestNextPhaseWaitsForTheSubscription(t *testing.T) {
	w := newWorld(t)
	w.acknowledge = time.Hour
	w.Create(w.group("group"))
	sub := w.subscribed()
	w.supervise(time.Minute)
	w.plan(w.bundle(settings), true, plansteps.MaxInline)
	p := w.read()
	w.stays(p.Status.Phase)
	w.showStage(sub, p)
	p = w.reaches(working)
	w.hasSettings()
	w.stays(working)
	made := w.settings().ResourceVersion
	w.showStage(sub, p)
	p = w.reaches(complete)
	if got := w.settings().ResourceVersion; got != made {
		t.Error("what was done while waiting was done again")
	}
	if diff := cmp.Diff("ConfigMap=Created", statuses(p)[4]); diff != "" {
		t.Error(diff)
	}
}

// TestNextPhaseDoesNotWaitForEver has a Subscription that never shows the phase.
func TestNextPhaseDoesNotWaitForEver(t *testing.T) {
	w := newWorld(t)
	w.acknowledge = 500 * time.Millisecond
	w.Create(w.group("group"))
	w.subscribed()
	w.supervise(time.Minute)
	w.plan(w.bundle(settings), true, plansteps.MaxInline)
	w.reaches(complete)
}

// TestPhaseOfAnotherClientStays clears the phase of a complete plan.
func TestPhaseOfAnotherClientStays(t *testing.T) {
	w := newWorld(t)
	w.Create(w.group("group"))
	w.supervise(time.Minute)
	w.plan(w.bundle(settings), true, plansteps.MaxInline)
	p := w.reaches(complete)
	p.Status.Phase = operatorsv1alpha1.InstallPlanPhaseNone
	written := time.Now()
	if err := w.Status().Update(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	w.becomes(func(p *operatorsv1alpha1.InstallPlan) bool {
		return p.Status.Phase == working || p.Status.Phase == complete
	})
	if stood := time.Since(written); stood < time.Second {
		t.Errorf("the phase stood for %s", stood)
	}
	w.reaches(complete)
}
