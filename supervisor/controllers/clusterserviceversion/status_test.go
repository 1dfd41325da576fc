package clusterserviceversion

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/controllers/clusterserviceversion/phase"
)

// TestWrite checks the order of the writes of a cause and a status, and that no write is repeated.
func TestWrite(t *testing.T) {
	csv := good(pending, "NeedsReinstall").CSV
	r, _ := failingWorld(t, csv)
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
	quota := &api.Cause{Reason: "QuotaExceeded", Remedy: "raise the quota, or delete objects that count against it"}
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
	g.record(csv, phase.Transition{Phase: pending, Reason: "RequirementsNotMet"})
	g.record(csv, phase.Transition{Phase: broken, Reason: "InstallCheckFailed"})
	if got := testutil.CollectAndCount(g.abnormal); got != 1 {
		t.Errorf("csv_abnormal has %d series after two phases, want 1", got)
	}
	g.record(csv, phase.Transition{Phase: succeeded})
	if n, v := testutil.CollectAndCount(g.abnormal), testutil.ToFloat64(g.succeeded); n != 0 || v != 1 {
		t.Errorf("after success csv_abnormal has %d series and csv_succeeded is %v, want 0 and 1", n, v)
	}
	g.record(csv, phase.Transition{Phase: succeeded, Reason: "WaitingOnCleanup"})
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

// TestResetGauges records a ClusterServiceVersion and one that is deleted while no controller runs. The gauges of the next
// manager count only the first one.
func TestResetGauges(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	first, err := newGauges(registry)
	if err != nil {
		t.Fatal(err)
	}
	stays, goes := kettle(), kettle()
	goes.Name = "toaster.v1"
	failed := phase.Transition{Phase: broken, Reason: "InstallCheckFailed"}
	first.record(stays, failed)
	first.record(goes, failed)
	first.reset()
	c, s, a := testutil.ToFloat64(first.count), testutil.CollectAndCount(first.succeeded), testutil.CollectAndCount(first.abnormal)
	if c != 0 || s != 0 || a != 0 {
		t.Errorf("stopped: csv_count is %v, %d and %d series, want none", c, s, a)
	}
	second, err := newGauges(registry)
	if err != nil {
		t.Fatal(err)
	}
	second.record(stays, failed)
	c, s, a = testutil.ToFloat64(second.count), testutil.CollectAndCount(second.succeeded), testutil.CollectAndCount(second.abnormal)
	if c != 1 || s != 1 || a != 1 {
		t.Errorf("started again: csv_count is %v, %d and %d series, want 1 each", c, s, a)
	}
}

func TestUpgradesAreCounted(t *testing.T) {
	g, err := newGauges(prometheus.NewPedanticRegistry())
	if err != nil {
		t.Fatal(err)
	}
	g.countReplacement(pending, succeeded)
	g.countReplacement(succeeded, replacing)
	g.countReplacement(replacing, replacing)
	g.countReplacement(replacing, deleting)
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
	g.record(other, phase.Transition{Phase: broken, Reason: "InstallCheckFailed"})
	g.record(csv, phase.Transition{Phase: broken, Reason: "InstallCheckFailed"})
	version := csv.Spec.Version.String()
	held := g.succeeded.WithLabelValues(csv.Namespace, csv.Name, version)
	for _, next := range []phase.Transition{{Phase: broken, Reason: "InstallCheckFailed"}, {Phase: pending, Reason: "RequirementsNotMet"}, {Phase: succeeded}} {
		g.record(csv, next)
		if g.succeeded.WithLabelValues(csv.Namespace, csv.Name, version) != held {
			t.Errorf("csv_succeeded was dropped on the way to %s", next.Phase)
		}
	}
	if n := testutil.CollectAndCount(g.abnormal); n != 1 {
		t.Errorf("csv_abnormal has %d series, want that of the other object", n)
	}
	csv.Spec.Version.Major++
	g.record(csv, phase.Transition{Phase: succeeded})
	if n := testutil.CollectAndCount(g.succeeded); n != 2 {
		t.Errorf("after another version csv_succeeded has %d series, want one for each object", n)
	}
}
