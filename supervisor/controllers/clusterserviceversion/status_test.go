package clusterserviceversion

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/chandlery/chandlery/supervisor/api"
)

func TestStatus(t *testing.T) {
	first := status(operatorsv1alpha1.ClusterServiceVersionStatus{}, Transition{Phase: pending, Reason: "A", Message: "a"}, Observation{Now: noon()})
	if first.Phase != pending || len(first.Conditions) != 1 || !first.LastTransitionTime.Time.Equal(noon()) {
		t.Fatalf("first status = %+v", first)
	}
	same := status(first, Transition{Phase: pending, Reason: "A", Message: "a"}, Observation{Now: noon().Add(time.Hour)})
	if diff := cmp.Diff(first, same); diff != "" {
		t.Errorf("an unchanged status was changed:\n%s", diff)
	}
	reworded := status(first, Transition{Phase: pending, Reason: "B", Message: "b"}, Observation{Now: noon().Add(time.Hour)})
	if !reworded.LastTransitionTime.Time.Equal(noon()) || !reworded.LastUpdateTime.Time.Equal(noon().Add(time.Hour)) || len(reworded.Conditions) != 2 {
		t.Errorf("another reason in the same phase: %+v, want the time of transition kept and the time of update moved", reworded)
	}
	needs := Requirements{Statuses: []operatorsv1alpha1.RequirementStatus{{Name: "x"}}}
	needing := status(first, Transition{Phase: pending, Reason: "A", Message: "a"}, Observation{Requirements: needs, Now: noon().Add(time.Minute)})
	if len(needing.RequirementStatus) != 1 || len(needing.Conditions) != 1 || !needing.LastUpdateTime.Time.Equal(noon().Add(time.Minute)) {
		t.Errorf("new evidence: %+v, want it written without a new condition", needing)
	}
}

// TestWrite checks the order of the writes of a cause and a status, and that no write is repeated.
func TestWrite(t *testing.T) {
	csv := good(pending, "NeedsReinstall").CSV
	r, _ := troubledWorld(t, csv)
	var writes []string
	r.writer.client = interceptor.NewClient(r.client.(client.WithWatch), interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			writes = append(writes, "cause")
			return c.Patch(ctx, o, p, opts...) //nolint:wrapcheck // of a fake
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, name string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
			writes = append(writes, name)
			return c.SubResource(name).Patch(ctx, o, p, opts...) //nolint:wrapcheck // of a fake
		},
	})
	quota := &api.Cause{Reason: "QuotaExceeded", Remedy: "raise the quota or make room in it"}
	for _, step := range []struct {
		name   string
		phase  operatorsv1alpha1.ClusterServiceVersionPhase
		cause  *api.Cause
		writes []string
	}{
		{"a cause precedes its status", broken, quota, []string{"cause", "status"}},
		{"nothing new", broken, quota, nil},
		{"another cause in the same phase", broken, &api.Cause{Reason: "AdmissionDenied"}, []string{"cause"}},
		{"a cause stays as long as its status", succeeded, nil, []string{"status", "cause"}},
		{"no cause as before", pending, nil, []string{"status"}},
	} {
		live := &operatorsv1alpha1.ClusterServiceVersion{}
		if err := r.client.Get(t.Context(), client.ObjectKeyFromObject(csv), live); err != nil {
			t.Fatal(err)
		}
		writes = nil
		if err := r.writer.write(t.Context(), live, operatorsv1alpha1.ClusterServiceVersionStatus{Phase: step.phase}, step.cause); err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		if diff := cmp.Diff(step.writes, writes); diff != "" {
			t.Errorf("%s: writes: -want, +got:\n%s", step.name, diff)
		}
		if err := r.client.Get(t.Context(), client.ObjectKeyFromObject(csv), live); err != nil {
			t.Fatal(err)
		}
		cause, found := api.CauseOf(live)
		if found != (step.cause != nil) || found && cause != *step.cause || live.Status.Phase != step.phase {
			t.Errorf("%s: phase %s, cause %+v", step.name, live.Status.Phase, cause)
		}
		if live.Annotations["olm.operatorGroup"] != "own" {
			t.Errorf("%s: annotations %v are left", step.name, live.Annotations)
		}
		if r.writer.lag.Behind(live, noon()) {
			t.Errorf("%s: the tracker expects another write", step.name)
		}
	}
}

func TestHistoryIsBounded(t *testing.T) {
	var s operatorsv1alpha1.ClusterServiceVersionStatus
	for i := range 100 {
		phase := pending
		if i%2 == 0 {
			phase = broken
		}
		s = status(s, Transition{Phase: phase, Reason: "R", Message: "m"}, Observation{Now: noon().Add(time.Duration(i) * time.Second)})
	}
	if len(s.Conditions) != 20 || s.Conditions[19].Phase != s.Phase {
		t.Errorf("history has %d entries, the last %s; want 20, the last %s", len(s.Conditions), s.Conditions[19].Phase, s.Phase)
	}
}

func TestGauges(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	g, err := newGauges(registry)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := newGauges(registry); err != nil {
		t.Fatalf("registering a second time: %v", err)
	}
	csv := kettle()
	g.record(csv, Transition{Phase: pending, Reason: "RequirementsNotMet"})
	g.record(csv, Transition{Phase: broken, Reason: "InstallCheckFailed"})
	if got := testutil.CollectAndCount(g.abnormal); got != 1 {
		t.Errorf("csv_abnormal has %d series after two phases, want 1", got)
	}
	g.record(csv, Transition{Phase: succeeded})
	if n, v := testutil.CollectAndCount(g.abnormal), testutil.ToFloat64(g.succeeded); n != 0 || v != 1 {
		t.Errorf("after success csv_abnormal has %d series and csv_succeeded is %v, want 0 and 1", n, v)
	}
	g.record(csv, Transition{Phase: succeeded, Reason: "WaitingOnCleanup"})
	if n, v := testutil.CollectAndCount(g.abnormal), testutil.ToFloat64(g.succeeded); n != 1 || v != 0 {
		t.Errorf("in its clean-up csv_abnormal has %d series and csv_succeeded is %v, want 1 and 0", n, v)
	}
	if v := testutil.ToFloat64(g.count); v != 1 {
		t.Errorf("csv_count is %v, want 1", v)
	}
	for range 2 {
		g.forget(types.NamespacedName{Namespace: csv.Namespace, Name: csv.Name})
	}
	if n, v := testutil.CollectAndCount(g.succeeded), testutil.ToFloat64(g.count); n != 0 || v != 0 {
		t.Errorf("after the object went csv_succeeded has %d series and csv_count is %v, want none", n, v)
	}
}

func TestUpgradesAreCounted(t *testing.T) {
	g, err := newGauges(prometheus.NewPedanticRegistry())
	if err != nil {
		t.Fatal(err)
	}
	g.moved(pending, succeeded)
	g.moved(succeeded, replacing)
	g.moved(replacing, replacing)
	g.moved(replacing, deleting)
	if v := testutil.ToFloat64(g.upgrades); v != 1 {
		t.Errorf("csv_upgrade_count is %v, want 1", v)
	}
}

// TestGaugesKeepTheirSeries checks that series are kept: a recreated series is another one.
func TestGaugesKeepTheirSeries(t *testing.T) {
	g, err := newGauges(prometheus.NewPedanticRegistry())
	if err != nil {
		t.Fatal(err)
	}
	csv, other := kettle(), kettle()
	other.Name = "toaster.v1"
	g.record(other, Transition{Phase: broken, Reason: "InstallCheckFailed"})
	g.record(csv, Transition{Phase: broken, Reason: "InstallCheckFailed"})
	version := csv.Spec.Version.String()
	held := g.succeeded.WithLabelValues(csv.Namespace, csv.Name, version)
	for _, next := range []Transition{{Phase: broken, Reason: "InstallCheckFailed"}, {Phase: pending, Reason: "RequirementsNotMet"}, {Phase: succeeded}} {
		g.record(csv, next)
		if g.succeeded.WithLabelValues(csv.Namespace, csv.Name, version) != held {
			t.Errorf("csv_succeeded was dropped on the way to %s", next.Phase)
		}
	}
	if n := testutil.CollectAndCount(g.abnormal); n != 1 {
		t.Errorf("csv_abnormal has %d series, want that of the other object", n)
	}
	csv.Spec.Version.Major++
	g.record(csv, Transition{Phase: succeeded})
	if n := testutil.CollectAndCount(g.succeeded); n != 2 {
		t.Errorf("after another version csv_succeeded has %d series, want one for each object", n)
	}
}
