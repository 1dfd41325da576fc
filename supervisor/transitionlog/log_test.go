package transitionlog_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/transitionlog"
)

func installPlan(phase operatorsv1alpha1.InstallPlanPhase, conditions ...operatorsv1alpha1.InstallPlanCondition) *operatorsv1alpha1.InstallPlan {
	return &operatorsv1alpha1.InstallPlan{
		ObjectMeta: metav1.ObjectMeta{Name: "install-a", UID: "a"},
		Status:     operatorsv1alpha1.InstallPlanStatus{Phase: phase, Conditions: conditions},
	}
}

func notInstalled(reason operatorsv1alpha1.InstallPlanConditionReason) operatorsv1alpha1.InstallPlanCondition {
	return operatorsv1alpha1.InstallPlanCondition{Type: operatorsv1alpha1.InstallPlanInstalled, Status: corev1.ConditionFalse, Reason: reason}
}

// stages returns a plan for each stage.
func stages() map[transitionlog.Stage]*operatorsv1alpha1.InstallPlan {
	return map[transitionlog.Stage]*operatorsv1alpha1.InstallPlan{
		{Phase: "", Reason: "InstallPlanNotYetReconciled"}:      installPlan(""),
		{Phase: "Planning", Reason: "Planning"}:                 installPlan("Planning"),
		{Phase: "RequiresApproval", Reason: "RequiresApproval"}: installPlan("RequiresApproval"),
		{Phase: "Installing", Reason: "Installing"}:             installPlan("Installing", notInstalled("InstallCheckFailed")),
		{Phase: "Complete"}:                                     installPlan("Complete"),
		{Phase: "Failed", Reason: "InstallPlanFailed"}:          installPlan("Failed"),
		{Phase: "Failed", Reason: "InstallComponentFailed"}:     installPlan("Failed", notInstalled("InstallComponentFailed")),
		{Phase: "SomethingNew", Reason: "SomethingNew"}:         installPlan("SomethingNew"),
	}
}

func TestStageIsShown(t *testing.T) {
	t.Parallel()
	for want, p := range stages() {
		if got := transitionlog.StageOf(p); got != want {
			t.Errorf("phase %q is %+v, want %+v", p.Status.Phase, got, want)
		}
		status := operatorsv1alpha1.SubscriptionStatus{InstallPlanRef: &corev1.ObjectReference{UID: p.UID}}
		if kind := want.Condition(); kind != "" {
			status.SetCondition(operatorsv1alpha1.SubscriptionCondition{Type: kind, Status: corev1.ConditionTrue, Reason: want.Reason})
		}
		for other, q := range stages() {
			if got := transitionlog.Shows(&status, q); got != (other == want) {
				t.Errorf("a status that tells %+v shows %+v: %v", want, other, got)
			}
		}
		status.InstallPlanRef.UID = "b"
		if transitionlog.Shows(&status, p) {
			t.Errorf("what is told of another plan counts: %+v", want)
		}
		status.InstallPlanRef = nil
		if _, refers := transitionlog.Shown(&status); refers {
			t.Error("a status without a plan tells of one")
		}
	}
}

func TestMissingIsShown(t *testing.T) {
	t.Parallel()
	status := operatorsv1alpha1.SubscriptionStatus{InstallPlanRef: &corev1.ObjectReference{UID: "a"}}
	status.SetCondition(operatorsv1alpha1.SubscriptionCondition{Type: transitionlog.Missing().Condition(), Status: corev1.ConditionTrue, Reason: transitionlog.Missing().Reason})
	if got, refers := transitionlog.Shown(&status); !refers || got != transitionlog.Missing() {
		t.Errorf("shown is %+v, %v", got, refers)
	}
}

func TestLogIsBoundedAndCountsOn(t *testing.T) {
	t.Parallel()
	var l transitionlog.Log
	for i := range 3 * transitionlog.MaxTransitions {
		l = l.Append(transitionlog.Transition{Plan: "install-a", UID: types.UID(strconv.Itoa(i % 2)), Phase: "Installing", Time: metav1.Unix(int64(i), 0), Observed: transitionlog.Live})
		if last := l.Last(); last.Sequence != int64(i+1) {
			t.Fatalf("number %d after %d", last.Sequence, i)
		}
	}
	if len(l) != transitionlog.MaxTransitions || l[0].Sequence != 2*transitionlog.MaxTransitions+1 {
		t.Errorf("%d transitions from %d on", len(l), l[0].Sequence)
	}
	if last := l.LastOf("0"); last == nil || last.Sequence != 3*transitionlog.MaxTransitions-1 {
		t.Errorf("the last one of a plan is %+v", last)
	}
	if last := l.LastOf("none"); last != nil {
		t.Errorf("the last one of no plan is %+v", last)
	}
}

func TestLogIsReadAsWritten(t *testing.T) {
	t.Parallel()
	l := transitionlog.Log{}.Append(transitionlog.Transition{
		Plan: "install-a", UID: "a", Version: "12", Phase: "Failed", Reason: "InstallComponentFailed",
		Time: metav1.NewTime(time.Unix(1700000000, 0).UTC()), Observed: transitionlog.Afterwards,
	})
	sub := &operatorsv1alpha1.Subscription{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{api.AnnotationTransitions: l.Text()}}}
	got, err := transitionlog.Read(sub)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(l.Text(), got.Text()); diff != "" {
		t.Error(diff)
	}
	if got, err := transitionlog.Read(&operatorsv1alpha1.Subscription{}); err != nil || got != nil {
		t.Errorf("no log is read as %v, %v", got, err)
	}
}

func TestLogThatIsNone(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"{}", "[1]", "[", strings.Repeat("[", 300<<10)} {
		sub := &operatorsv1alpha1.Subscription{ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: "lamp", Annotations: map[string]string{api.AnnotationTransitions: text}}}
		if _, err := transitionlog.Read(sub); err == nil || !strings.Contains(err.Error(), "ops/lamp") || !strings.Contains(err.Error(), "remove the annotation") {
			t.Errorf("%.20s is read with %v", text, err)
		}
	}
}

func TestNumbersThatSomebodyWrote(t *testing.T) {
	t.Parallel()
	for _, number := range []int64{1<<63 - 1, -1 << 63, -1, 0} {
		if last := (transitionlog.Log{{Sequence: number}}).Append(transitionlog.Transition{}).Last(); last.Sequence < 1 {
			t.Errorf("%d comes after %d", last.Sequence, number)
		}
	}
}
