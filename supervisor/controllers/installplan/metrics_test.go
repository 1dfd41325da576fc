package installplan

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/chandlery/chandlery/supervisor/api/scheme"
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
		client: c, live: c, clock: clock.RealClock{}, records: &planRecords{}, waiting: &waitingPlans{},
		gate:     &phaseGate{cached: c, live: c, entries: &phaseEntries{}},
		recorder: events.NewFakeRecorder(10),
	}
	for _, step := range []struct {
		name string
		do   func() error
		want map[string]float64
	}{
		{name: "start", do: func() error { return nil }, want: map[string]float64{"ops": 2, "shop": 1}},
		{name: "approve", do: func() error { return approve(t, c, waits) }, want: map[string]float64{"ops": 1, "shop": 1}},
		{name: "delete", do: func() error { return c.Delete(t.Context(), other) }, want: map[string]float64{"ops": 1}},
		{name: "remove", do: func() error { return remove(t, c, planned) }},
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
