package installplan

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/chandlery/chandlery/supervisor/api/scheme"
	"github.com/chandlery/chandlery/supervisor/plansteps"
)

// TestWaitingForApproval reconciles plans, and compares the metric of those that wait for approval
// after each step of a user.
func TestWaitingForApproval(t *testing.T) {
	kinds, err := scheme.New()
	if err != nil {
		t.Fatal(err)
	}
	plan := func(namespace, name string, phase operatorsv1alpha1.InstallPlanPhase) *operatorsv1alpha1.InstallPlan {
		p := planOf(phase, false, "")
		p.Namespace, p.Name, p.Finalizers = namespace, name, []string{"example.com/keep"}
		return p
	}
	waits, planned, other := plan("ops", "waits", phaseRequiresApproval), plan("ops", "planned", phasePlanning), plan("shop", "other", phaseRequiresApproval)
	c := fake.NewClientBuilder().WithScheme(kinds).WithStatusSubresource(waits).
		WithObjects(waits, planned, other, plan("shop", "failed", phaseFailed)).Build()
	r := &reconciler{
		client: c, live: c, clock: clock.RealClock{}, records: &planRecords{}, series: &planSeries{},
		gate:     &phaseGate{cached: c, live: c, entries: &phaseEntries{}},
		recorder: events.NewFakeRecorder(10),
	}
	for _, step := range []struct {
		name string
		do   func() error
		want map[string]float64
		// plans is the number of plans that have been reconciled and exist.
		plans int
	}{
		{name: "start", do: func() error { return nil }, want: map[string]float64{"ops": 2, "shop": 1}, plans: 3},
		{name: "approve", do: func() error { return approve(t, c, waits) }, want: map[string]float64{"ops": 1, "shop": 1}, plans: 3},
		{name: "delete", do: func() error { return c.Delete(t.Context(), other) }, want: map[string]float64{"ops": 1}, plans: 3},
		{name: "remove", do: func() error { return remove(t, c, planned) }, plans: 2},
	} {
		if err := step.do(); err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		for _, p := range []*operatorsv1alpha1.InstallPlan{waits, planned, other} {
			for range 2 { // The second pass reads the phase that the first one wrote.
				if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(p)}); err != nil {
					t.Fatalf("%s: %v", step.name, err)
				}
			}
		}
		if diff := cmp.Diff(step.want, waitingByNamespace(t)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step.name, diff)
		}
		waiting := 0.0
		for _, plans := range step.want {
			waiting += plans
		}
		if got := testutil.CollectAndCount(waitingSince); got != int(waiting) {
			t.Errorf("%s: %d plans have a time since which they wait, want %v", step.name, got, waiting)
		}
		if got := testutil.ToFloat64(planCount); got != float64(step.plans) {
			t.Errorf("%s: install_plan_count is %v, want %d", step.name, got, step.plans)
		}
	}
}

// TestCountersOfAlertsBeginAtZero compares the counters of a supervisor that has just started.
func TestCountersOfAlertsBeginAtZero(t *testing.T) {
	acknowledgements.Reset()
	stepFailures.Reset()
	initMetrics(plansteps.Kinds{{Group: "example.com", Kind: "Lamp"}: plansteps.Namespaced})
	if got := testutil.CollectAndCount(acknowledgements); got != 2 {
		t.Errorf("%d outcomes of waiting for Subscriptions, want 2", got)
	}
	before := testutil.CollectAndCount(stepFailures)
	for _, kind := range []string{"ClusterServiceVersion", "Subscription", "BundleSecret", "Lamp"} {
		if got := testutil.ToFloat64(stepFailures.WithLabelValues(kind)); got != 0 {
			t.Errorf("kind %s begins at %v", kind, got)
		}
	}
	if got := testutil.CollectAndCount(stepFailures); got != before {
		t.Errorf("%d of the kinds have no counter", got-before)
	}
}

// TestResetMetrics records a plan and one that is deleted while no controller runs. The series of the next manager count
// only the first one.
func TestResetMetrics(t *testing.T) {
	t.Cleanup(ResetMetrics)
	ResetMetrics()
	stays, goes := planOf(phaseRequiresApproval, false, ""), planOf(phaseRequiresApproval, false, "")
	stays.Name, goes.Name = "stays", "goes"
	before := &planSeries{}
	before.record(stays)
	before.record(goes)
	ResetMetrics()
	if c, w := testutil.ToFloat64(planCount), testutil.CollectAndCount(waitingSince); c != 0 || w != 0 || waitingByNamespace(t) != nil {
		t.Errorf("stopped: %v plans, %d wait, want none", c, w)
	}
	(&planSeries{}).record(stays)
	if c, w := testutil.ToFloat64(planCount), testutil.CollectAndCount(waitingSince); c != 1 || w != 1 {
		t.Errorf("started again: %v plans, %d wait, want 1", c, w)
	}
}

// approve approves a plan.
func approve(t *testing.T, c client.Client, p *operatorsv1alpha1.InstallPlan) error {
	t.Helper()
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(p), p); err != nil {
		return err
	}
	p.Spec.Approved = true
	return c.Update(t.Context(), p)
}

// remove deletes a plan and its finalizers.
func remove(t *testing.T, c client.Client, p *operatorsv1alpha1.InstallPlan) error {
	t.Helper()
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(p), p); err != nil {
		return err
	}
	p.Finalizers = nil
	if err := c.Update(t.Context(), p); err != nil {
		return err
	}
	return c.Delete(t.Context(), p)
}

// waitingByNamespace returns the values of the metric by namespace.
func waitingByNamespace(t *testing.T) map[string]float64 {
	t.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(waitingForApproval)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var values map[string]float64
	for _, family := range families {
		for _, m := range family.GetMetric() {
			if values == nil {
				values = map[string]float64{}
			}
			values[m.GetLabel()[0].GetValue()] = m.GetGauge().GetValue()
		}
	}
	return values
}

// TestWarnedStepCountsOnce checks that installplan_warnings_total counts steps, and not warnings.
func TestWarnedStepCountsOnce(t *testing.T) {
	r := &eventReporter{recorder: events.NewFakeRecorder(10), plan: planOf(phaseInstalling, true, ""), notes: map[int]string{}}
	step := &operatorsv1alpha1.Step{Resolving: "lamp.v1", Resource: operatorsv1alpha1.StepResource{Kind: "Service", Name: "lamp"}}
	before := testutil.ToFloat64(warnedSteps)
	for _, texts := range [][]string{{"one", "two"}, {"one", "two"}, {"three"}} {
		r.warned(0, step, stepWarnings{texts: texts})
	}
	r.warned(1, step, stepWarnings{texts: []string{"one"}})
	if got := testutil.ToFloat64(warnedSteps) - before; got != 2 {
		t.Errorf("two steps with warnings count %v", got)
	}
}
