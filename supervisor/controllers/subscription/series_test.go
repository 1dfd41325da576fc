package subscription

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"
	"k8s.io/utils/clock"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/resolution"
)

// shows sets the state and the true conditions of a Subscription, with a reason each.
func shows(state operatorsv1alpha1.SubscriptionState, conditions ...operatorsv1alpha1.SubscriptionCondition) func(*operatorsv1alpha1.Subscription) {
	return func(sub *operatorsv1alpha1.Subscription) {
		sub.CreationTimestamp, sub.Status.State = at(0), state
		for i := range conditions {
			since := at(10 + i)
			conditions[i].LastTransitionTime = &since
		}
		sub.Status.Conditions = conditions
	}
}

func TestWaitOf(t *testing.T) {
	const pendingState, latest = operatorsv1alpha1.SubscriptionStateUpgradePending, operatorsv1alpha1.SubscriptionStateAtLatest
	installing := version("lamp.v2", "lamp", operatorsv1alpha1.CSVPhaseInstalling, made(5))
	installing.Status.Reason = operatorsv1alpha1.CSVReasonWaiting
	missing := isTrue(planMissing, "ReferencedInstallPlanNotFound", "")
	for _, tt := range []struct {
		reason  string
		sub     *operatorsv1alpha1.Subscription
		current *operatorsv1alpha1.ClusterServiceVersion
		what    string
		because string
		minute  int
	}{
		{reason: "up to date", sub: subscription("my", "lamp", shows(latest))},
		{reason: "up to date, and its plan was deleted", sub: subscription("my", "lamp", shows(latest, missing))},
		{reason: "deleted plan of an update", sub: subscription("my", "lamp", shows(pendingState, missing)), what: "InstallPlanMissing", because: "ReferencedInstallPlanNotFound", minute: 10},
		{reason: "approval", sub: subscription("my", "lamp", shows(pendingState, isTrue(planPending, "RequiresApproval", ""))), what: "InstallPlanPending", because: "RequiresApproval", minute: 10},
		{
			reason: "the exact reason of a failed resolution",
			sub:    subscription("my", "lamp", shows("", isTrue(api.ConditionBlocked, "OperatorGroupInvalid", ""), isTrue(unresolved, "ErrorPreventedResolution", ""))),
			what:   "ResolutionFailed", because: "OperatorGroupInvalid", minute: 11,
		},
		{
			reason: "the resolution precedes a plan",
			sub:    subscription("my", "lamp", shows("", isTrue(planPending, "Installing", ""), isTrue(unresolved, "ConstraintsNotSatisfiable", ""))),
			what:   "ResolutionFailed", because: "ConstraintsNotSatisfiable", minute: 11,
		},
		{reason: "a deprecation is nothing to wait for", sub: subscription("my", "lamp", shows(latest, isTrue(operatorsv1alpha1.SubscriptionDeprecated, "Deprecated", "")))},
		{reason: "pods of the first version", sub: subscription("my", "lamp", shows(pendingState)), current: installing, what: "ClusterServiceVersion", because: "InstallWaiting", minute: 5},
		{reason: "new", sub: subscription("my", "lamp", shows("")), what: "Resolution"},
		{reason: "resolved for the first time", sub: subscription("my", "lamp", shows(""), func(sub *operatorsv1alpha1.Subscription) { sub.Status.LastUpdated = at(3) }), what: "Resolution", minute: 3},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			want := wait{what: tt.what, reason: tt.because}
			if tt.what != "" {
				want.since = at(tt.minute).Time
			}
			got := waitOf(&decision{subscription: tt.sub, present: installation{current: tt.current}})
			if diff := cmp.Diff(want, got, cmp.AllowUnexported(wait{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestSeriesOfSubscriptions records passes over two namespaces, and compares the series after each.
func TestSeriesOfSubscriptions(t *testing.T) {
	syncs.Reset()
	waitingSince.Reset()
	before := testutil.ToFloat64(subscriptionCount)
	decisions := func(subs ...*operatorsv1alpha1.Subscription) []*decision {
		var list []*decision
		for _, sub := range subs {
			list = append(list, &decision{subscription: sub})
		}
		return list
	}
	const pendingState, latest = operatorsv1alpha1.SubscriptionStateUpgradePending, operatorsv1alpha1.SubscriptionStateAtLatest
	waits := subscription("my", "lamp", manual, shows(pendingState, isTrue(planPending, "RequiresApproval", "first")))
	worded := subscription("my", "lamp", manual, shows(pendingState, isTrue(unresolved, "", ""), isTrue(planPending, "RequiresApproval", "second")))
	worded.Status.Conditions = worded.Status.Conditions[1:] // with a later time
	ready := subscription("my", "lamp", manual, knows("lamp.v1", "lamp.v1"), shows(latest))
	labels := []string{"my", "", "stable", "lamp", "Manual"}
	r := &seriesRecorder{}
	for _, step := range []struct {
		reason        string
		namespace     string
		decisions     []*decision
		total         int
		count         float64
		syncs, waits  int
		shared, since float64
	}{
		{reason: "first", namespace: "a", decisions: decisions(waits), total: 1, count: 1, syncs: 1, waits: 1, shared: 1, since: float64(at(10).Unix())},
		{reason: "same labels in another namespace", namespace: "b", decisions: decisions(waits), total: 2, count: 3, syncs: 1, waits: 2, shared: 2, since: float64(at(10).Unix())},
		{reason: "another message changes no time", namespace: "a", decisions: decisions(worded), total: 1, count: 3, syncs: 1, waits: 2, shared: 3, since: float64(at(10).Unix())},
		{reason: "installed, while the other one waits", namespace: "b", decisions: decisions(ready), total: 1, count: 2, syncs: 2, waits: 1, shared: 3, since: float64(at(10).Unix())},
		{reason: "no Subscription is left", namespace: "b", count: 1, syncs: 1, waits: 1, shared: 3, since: float64(at(10).Unix())},
	} {
		r.record(step.namespace, step.decisions, step.total)
		if got := testutil.ToFloat64(subscriptionCount) - before; got != step.count {
			t.Errorf("%s: subscription_count is %v, want %v", step.reason, got, step.count)
		}
		if s, w := testutil.CollectAndCount(syncs), testutil.CollectAndCount(waitingSince); s != step.syncs || w != step.waits {
			t.Errorf("%s: %d and %d series, want %d and %d", step.reason, s, w, step.syncs, step.waits)
		}
		if got := testutil.ToFloat64(syncs.WithLabelValues(labels...)); got != step.shared {
			t.Errorf("%s: %v passes, want %v", step.reason, got, step.shared)
		}
		if got := testutil.ToFloat64(waitingSince.WithLabelValues("a", "my", "InstallPlanPending", "RequiresApproval")); got != step.since {
			t.Errorf("%s: waits since %v, want %v", step.reason, got, step.since)
		}
	}
	r.record("a", nil, 0)
	if s, w := testutil.CollectAndCount(syncs), testutil.CollectAndCount(waitingSince); s != 0 || w != 0 {
		t.Errorf("%d and %d series are left", s, w)
	}
	if len(r.shown)+len(r.sharing)+len(r.totals) != 0 {
		t.Errorf("entries are left: %v, %v, %v", r.shown, r.sharing, r.totals)
	}
}

// TestResetMetrics records a Subscription and one that is deleted while no controller runs. The recorder of the next manager
// counts only the first one.
func TestResetMetrics(t *testing.T) {
	t.Cleanup(ResetMetrics)
	ResetMetrics()
	const pendingState = operatorsv1alpha1.SubscriptionStateUpgradePending
	stays := &decision{subscription: subscription("my", "lamp", shows(pendingState, isTrue(planPending, "RequiresApproval", "")))}
	goes := &decision{subscription: subscription("other", "kettle", shows(pendingState, isTrue(planPending, "RequiresApproval", "")))}
	(&seriesRecorder{}).record("a", []*decision{stays, goes}, 2)
	ResetMetrics()
	if c, s, w := testutil.ToFloat64(subscriptionCount), testutil.CollectAndCount(syncs), testutil.CollectAndCount(waitingSince); c != 0 || s != 0 || w != 0 {
		t.Errorf("stopped: %v Subscriptions, %d and %d series, want none", c, s, w)
	}
	(&seriesRecorder{}).record("a", []*decision{stays}, 1)
	if c, s, w := testutil.ToFloat64(subscriptionCount), testutil.CollectAndCount(syncs), testutil.CollectAndCount(waitingSince); c != 1 || s != 1 || w != 1 {
		t.Errorf("started again: %v Subscriptions, %d and %d series, want 1 each", c, s, w)
	}
}

// TestRecordedResolutions records solutions, and compares the outcomes that they add to the metric.
func TestRecordedResolutions(t *testing.T) {
	succeeded, failed := resolution.Outcome{}, resolution.Outcome{Err: &resolution.UnsatisfiableError{}}
	pending := resolution.Outcome{Err: resolution.ErrPending}
	for name, tt := range map[string]struct {
		solution resolution.Solution
		want     resolutionCounts
	}{
		"NoSubscription":   {nil, resolutionCounts{}},
		"Succeeded":        {resolution.Solution{"a": succeeded, "b": succeeded}, resolutionCounts{succeeded: 1}},
		"Failed":           {resolution.Solution{"a": succeeded, "b": failed}, resolutionCounts{failed: 1}},
		"Pending":          {resolution.Solution{"a": pending, "b": succeeded}, resolutionCounts{}},
		"PendingAndFailed": {resolution.Solution{"a": pending, "b": failed}, resolutionCounts{}},
	} {
		t.Run(name, func(t *testing.T) {
			before := countResolutions(t)
			recordResolution(time.Second, tt.solution)
			if got := countResolutions(t).minus(before); got != tt.want {
				t.Errorf("recorded %+v, want %+v", got, tt.want)
			}
		})
	}
}

// TestOneRecordForEachResolution reconciles namespaces, and compares how many resolutions were recorded.
func TestOneRecordForEachResolution(t *testing.T) {
	state := observed(read(t), subscription("my", "lamp"))
	r := &reconciler{clock: clock.RealClock{}}
	before := countResolutions(t)
	for range 3 {
		r.decide(t.Context(), state)
	}
	if got, want := countResolutions(t).minus(before), (resolutionCounts{succeeded: 1}); got != want {
		t.Errorf("three passes with the same input recorded %+v, want %+v", got, want)
	}
	refused := *state
	refused.groups = groups{}
	before = countResolutions(t)
	r.decide(t.Context(), &refused)
	if got := countResolutions(t).minus(before); got != (resolutionCounts{}) {
		t.Errorf("a namespace without an OperatorGroup recorded %+v, want none", got)
	}
}

// resolutionCounts are the numbers of recorded resolutions.
type resolutionCounts struct{ succeeded, failed uint64 }

func (c resolutionCounts) minus(other resolutionCounts) resolutionCounts {
	return resolutionCounts{c.succeeded - other.succeeded, c.failed - other.failed}
}

// countResolutions returns the numbers of resolutions that the summary has. The histogram must have as many.
func countResolutions(t *testing.T) resolutionCounts {
	t.Helper()
	read := func(collector any) *dto.Metric {
		m := &dto.Metric{}
		if err := collector.(prometheus.Metric).Write(m); err != nil {
			t.Fatal(err)
		}
		return m
	}
	count := func(outcome string) uint64 {
		return read(resolutionSummary.WithLabelValues(outcome)).GetSummary().GetSampleCount()
	}
	c := resolutionCounts{count(outcomeSucceeded), count(outcomeFailed)}
	if all := read(resolutions).GetHistogram().GetSampleCount(); all != c.succeeded+c.failed {
		t.Errorf("the histogram has %d resolutions, want %d", all, c.succeeded+c.failed)
	}
	return c
}
