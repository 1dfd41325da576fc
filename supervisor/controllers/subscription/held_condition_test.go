package subscription

import (
	"slices"
	"strings"
	"testing"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/chandlery/chandlery/supervisor/api"
)

// TestWaiting checks that a Subscription reports what its update waits for.
func TestWaiting(t *testing.T) {
	const pendingPhase, installingPhase = operatorsv1alpha1.CSVPhasePending, operatorsv1alpha1.CSVPhaseInstalling
	const refused, waits = operatorsv1alpha1.CSVReasonOperatorConditionNotUpgradeable, operatorsv1alpha1.CSVReasonWaiting
	for _, tt := range []struct {
		reason  string
		phase   operatorsv1alpha1.ClusterServiceVersionPhase
		because operatorsv1alpha1.ConditionReason
		first   bool // nothing is installed yet
		to      string
		age     time.Duration
		want    []string
		again   time.Duration // counted from when the version came to its phase
	}{
		{
			reason: "the operator does not let itself be upgraded", phase: pendingPhase, because: refused,
			want: []string{"clusterserviceversion lamp.v2 is in phase Pending: the lamp is hot; lamp.v1 stays", "override condition Upgradeable", "OperatorCondition lamp.v1"},
		},
		{reason: "a webhook does not answer", phase: installingPhase, because: waits, age: time.Minute, want: []string{"phase Installing: the lamp is hot; lamp.v1 stays installed until then"}},
		{reason: "what takes no longer than usual", phase: installingPhase, because: waits, age: 10 * time.Second, again: waitingGrace},
		{reason: "a predecessor that is in the way", phase: pendingPhase, because: operatorsv1alpha1.CSVReasonNeedsReinstall, age: time.Minute, want: []string{"phase Pending"}},
		{reason: "requirements, of which the plan tells", phase: pendingPhase, because: operatorsv1alpha1.CSVReasonRequirementsUnknown, age: time.Minute},
		{reason: "what has failed is told otherwise", phase: operatorsv1alpha1.CSVPhaseFailed, because: operatorsv1alpha1.CSVReasonInstallCheckFailed, age: time.Minute},
		{reason: "what goes is not waited for", phase: pendingPhase, because: refused, to: "lamp.v1"},
		{reason: "a first version is no update", phase: installingPhase, because: waits, age: time.Minute, first: true},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			came := at(1)
			v1, v2 := version("lamp.v1", "lamp", succeeded), version("lamp.v2", "lamp", tt.phase, replaces("lamp.v1"), made(1))
			v2.Status.Reason, v2.Status.Message, v2.Status.LastTransitionTime = tt.because, "the lamp is hot", &came
			list := []*operatorsv1alpha1.ClusterServiceVersion{v1, v2}
			if tt.first {
				list = list[1:]
			}
			o := observed(read(t), subscription("my", "lamp", pinned(tt.to))).with(list)
			d := decided(t, o)[0]
			now := at(1)
			now.Time = now.Add(tt.age)
			if tt.again != 0 {
				if _, again := waiting(d, nil, now.Time); !again.Equal(came.Add(tt.again)) {
					t.Errorf("it is looked at again at %s", again)
				}
			}
			got := statusOf(o, d, nil, now).GetCondition(api.ConditionNewerVersionHeld)
			told := got.Status == corev1.ConditionTrue && got.Reason == string(tt.because)
			if told != (tt.want != nil) {
				t.Errorf("condition %+v", got)
			}
			for _, want := range tt.want {
				if !strings.Contains(got.Message, want) {
					t.Errorf("message %q does not contain %q", got.Message, want)
				}
			}
		})
	}
}

// TestWaitingFlickers checks that a changing message is written at most once a minute, and that its
// end is written at once.
func TestWaitingFlickers(t *testing.T) {
	sub, came := subscription("my", "lamp"), at(0)
	v2 := version("lamp.v2", "lamp", installing, replaces("lamp.v1"))
	v2.Status.Reason, v2.Status.LastTransitionTime = operatorsv1alpha1.CSVReasonWaiting, &came
	o := observed(read(t), sub).with([]*operatorsv1alpha1.ClusterServiceVersion{version("lamp.v1", "lamp", replacing), v2})
	writes := 0
	for second := range 600 {
		v2.Status.Message = strings.Repeat("x", second%7)
		// It stays in no phase for long.
		if v2.Status.Phase = installing; second%20 == 0 {
			v2.Status.Phase = operatorsv1alpha1.CSVPhaseInstallReady
		}
		now := at(5)
		now.Time = now.Add(time.Duration(second) * time.Second)
		d := decided(t, o)[0]
		before := o.subscriptions[0]
		status := statusOf(o, d, nil, now)
		if changed(before.Status, status, equality.Semantic.DeepEqual) {
			writes++
		}
		if _, again := waiting(d, nil, now.Time); again.IsZero() && second%7 != 0 && !changed(before.Status, status, equality.Semantic.DeepEqual) &&
			!strings.Contains(status.GetCondition(api.ConditionNewerVersionHeld).Message, ": "+v2.Status.Message+";") {
			t.Fatalf("after %d s: what is told is old, and nobody looks again", second)
		}
		after := before.DeepCopy()
		after.Status = status
		o.subscriptions[0] = after
	}
	if writes < 5 || writes > 11 {
		t.Errorf("%d writes in ten minutes", writes)
	}
	v2.Status.Phase = succeeded
	told := slices.ContainsFunc(statusOf(o, decided(t, o)[0], nil, at(16)).Conditions, func(c operatorsv1alpha1.SubscriptionCondition) bool { return c.Type == api.ConditionNewerVersionHeld })
	if told {
		t.Error("it has come, and is waited for still")
	}
}
