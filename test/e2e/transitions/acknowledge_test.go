package transitions_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/transitionlog"
	"github.com/chandlery/chandlery/test/controlplane"
	"github.com/chandlery/chandlery/test/pause"
)

// closed makes the API server refuse every change of a part of the Subscriptions of the world,
// their status or the rest, until open is called.
func (w *world) closed(resource string) (open func()) {
	w.T.Helper()
	name := strings.ReplaceAll(w.Namespace+"-"+resource, "/", "-")
	policy := &admissionregistrationv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionregistrationv1.MatchResources{ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{
				RuleWithOperations: admissionregistrationv1.RuleWithOperations{
					Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Update},
					Rule: admissionregistrationv1.Rule{
						APIGroups: []string{operatorsv1alpha1.GroupName}, APIVersions: []string{"*"}, Resources: []string{resource},
					},
				},
			}}},
			Validations: []admissionregistrationv1.Validation{{Expression: "false", Message: "closed for a while"}},
		},
	}
	binding := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: name, ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
		},
	}
	w.Create(policy, binding)
	probe := w.subscription(client.ObjectKey{Namespace: w.Namespace, Name: "probe"})
	w.Create(probe)
	try := func() error {
		patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"annotations":{"probe":"`+name+`"}},"status":{"reason":"probe","lastUpdated":"2026-01-01T00:00:00Z"}}`))
		if strings.HasSuffix(resource, "/status") {
			return w.Client.Status().Patch(w.T.Context(), probe.DeepCopy(), patch, client.DryRunAll)
		}
		return w.Patch(w.T.Context(), probe.DeepCopy(), patch, client.DryRunAll)
	}
	until := func(refused bool) {
		w.T.Helper()
		var err error
		for {
			if err = try(); (err != nil && strings.Contains(err.Error(), "closed for a while")) == refused {
				return
			}
			if !pause.For(w.T.Context(), retryPeriod/5) {
				w.T.Fatalf("%s is to be closed: %v, and a change meets %v", resource, refused, err)
			}
		}
	}
	until(true)
	return func() {
		w.T.Helper()
		for _, object := range []client.Object{binding, policy} {
			if err := w.Delete(w.T.Context(), object); err != nil {
				w.T.Fatal(err)
			}
		}
		until(false)
	}
}

// TestUnwrittenStatus prevents writes of the status of Subscriptions, or of their transition log,
// while an operator is installed. The InstallPlan must wait at each stage for the allowed time, and
// no longer. The supervisor is killed between the writes of the log and the status. After the
// status can be written again, it must show every stage in order.
func TestUnwrittenStatus(t *testing.T) {
	t.Run("status", func(t *testing.T) {
		if sum := unwritten(t, "subscriptions/status"); sum.afterwards > 0 {
			t.Errorf("the ledger was written in time, and says of %d of %d transitions that they were seen afterwards", sum.afterwards, sum.transitions)
		}
	})
	t.Run("ledger", func(t *testing.T) {
		if sum := unwritten(t, "subscriptions"); sum.afterwards == 0 {
			t.Errorf("the ledger was written too late, and says of %d transitions that all of them were seen as they happened", sum.transitions)
		}
	})
}

// unwritten installs an operator while a part of Subscriptions cannot be written.
func unwritten(t *testing.T, resource string) verdict {
	t.Helper()
	w := newWorld(t, 1)
	s := &scene{world: w, o: w.observe()}
	s.hand = hand{c: w.Client, o: s.o}
	open := w.closed(resource)
	crew := w.newCrew()
	crew.start(1)
	s.key = w.alone(0, false)
	s.comes("a plan that is complete", func(st *story) bool { return st.plan != nil && stageOf(st.plan) == complete })
	s.do(crew.dismiss(everybody, kill))
	open()
	crew.start(1)
	s.rests()
	sum := s.o.audit(t)
	if sum.unacknowledged == 0 {
		t.Error("the plan never waited in vain")
	}
	return sum
}

// TestSecondTimeOfAPhase sets an InstallPlan to a phase for a second time while its Subscription
// shows the first time, and then starts supervisors that have not seen this. The approved
// InstallPlan must wait until the second time is shown.
func TestSecondTimeOfAPhase(t *testing.T) {
	s := newScene(t, true)
	ctx := t.Context()
	s.tells(asking)
	open := s.closed("subscriptions/status")
	for _, to := range []stage{broken, asking} {
		s.do(s.moves(ctx, s.key, to))
	}
	s.comes("a ledger that says so", func(st *story) bool {
		ledger, err := transitionlog.Read(st.subscription)
		return err == nil && len(ledger) > 3 && entryTold(ledger.Last()).stage == asking
	})
	s.do(s.crew.dismiss(everybody, kill))
	s.crew.start(1)
	leading, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for s.crew.leader(ctx) < 0 {
		if !pause.For(leading, retryPeriod) {
			t.Fatal("no supervisor leads")
		}
	}
	approved := time.Now()
	s.do(s.asks(ctx, s.key, `{"approved":true}`))
	s.comes("a plan that is installed", func(st *story) bool { return st.plan != nil && stageOf(st.plan) == working })
	if waited := time.Since(approved); waited < acknowledgement-roughness {
		t.Errorf("the plan went on after %s, since the first time was shown:\n%s", waited, s.sofar())
	}
	open()
	s.rests()
	s.o.audit(t)
}

// TestLedgerIsBounded sets an InstallPlan to more stages than a transition log holds, with and
// without a running supervisor.
func TestLedgerIsBounded(t *testing.T) {
	s := newScene(t, false)
	s.rests()
	quick := func() {
		for range bound {
			for _, to := range []stage{failed, broken} {
				s.do(s.moves(t.Context(), s.key, to))
			}
		}
	}
	quick()
	s.comes("the last of many stages", caughtUp)
	s.do(s.crew.dismiss(everybody, kill))
	quick()
	s.crew.start(1)
	s.ends()
	var ledger transitionlog.Log
	s.comes("a full ledger", func(st *story) bool {
		var err error
		ledger, err = transitionlog.Read(st.subscription)
		return err == nil && len(ledger) == bound
	})
	if last := ledger[bound-1].Sequence; last < 4*bound {
		t.Errorf("the last entry is number %d", last)
	}
}

// TestCalmInstallation is a test without failures. Every stage must be recorded when it occurs, and
// must stay until it is shown.
func TestCalmInstallation(t *testing.T) {
	s := newScene(t, true)
	s.tells(asking)
	s.do(s.asks(t.Context(), s.key, `{"approved":true}`))
	s.rests()
	s.ends()
	var got []string
	ledger, err := transitionlog.Read(s.tells(complete))
	s.do(err)
	for _, e := range ledger {
		got = append(got, string(e.Observed)+" "+entryTold(&e).stage.String())
	}
	want := []string{"live /InstallPlanNotYetReconciled", "live RequiresApproval", "live Installing", "live Complete"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("ledger (-want +got):\n%s", diff)
	}
}

// TestOldSubscription has a Subscription without changes for longer than the API server's watch
// history. A change of another one while no supervisor runs must be recorded nevertheless.
func TestOldSubscription(t *testing.T) {
	w := newWorld(t, 1)
	crew := w.newCrew()
	crew.start(1)
	before := w.observe()
	old := w.alone(0, false)
	rested := func(st *story) bool { return caughtUp(st) && st.subscription.Status.InstalledCSV != "" }
	if err := before.comes(t.Context(), old, "the end of the installation", rested); err != nil {
		t.Fatal(err)
	}
	// The worst case is a Subscription with pending transitions whose last change is no longer in the history.
	if err := crew.dismiss(everybody, kill); err != nil {
		t.Fatal(err)
	}
	if err := (hand{c: w.Client, o: before}).moves(t.Context(), old, failed); err != nil {
		t.Fatal(err)
	}
	// Open watches would delay the stop of the API server.
	cp := controlplane.Get(t)
	if err := errors.Join(cp.KillComponent(controlplane.KubeAPIServer), cp.StartComponent(t.Context(), controlplane.KubeAPIServer)); err != nil {
		t.Fatal(err)
	}
	s := &scene{world: w, o: w.observe()}
	s.hand = hand{c: w.Client, o: s.o}
	crew.start(1)
	s.key = w.alone(1, false)
	s.rests()
	s.do(crew.dismiss(everybody, kill))
	for _, to := range []stage{working, failed, unreconciled, broken, asking, failed} {
		s.do(s.moves(t.Context(), s.key, to))
	}
	crew.start(1)
	s.comes("rest", caughtUp)
	for _, problem := range audit(s.o.record(s.key)).problems {
		t.Error(problem)
	}
}
