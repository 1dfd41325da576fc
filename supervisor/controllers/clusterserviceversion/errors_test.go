package clusterserviceversion

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/controllers/clusterserviceversion/phase"
	"github.com/chandlery/chandlery/test/testenv/fixtures"
)

// failingWorld returns a reconciler whose cluster has one version.
func failingWorld(t *testing.T, csv *operatorsv1alpha1.ClusterServiceVersion) (*reconciler, *clocktesting.FakePassiveClock) {
	t.Helper()
	scheme := fixtures.Scheme(t)
	g, err := newGauges(prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	clock := clocktesting.NewFakePassiveClock(noon())
	c := fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(csv).WithObjects(csv).Build()
	return &reconciler{
		client: c, writer: &versionWriter{client: c, clock: clock}, clock: clock, gauges: g, events: events.NewFakeRecorder(10),
	}, clock
}

func TestErrorsThatLastAreTold(t *testing.T) {
	csv := good(ready, "AllRequirementsMet").CSV
	r, clock := failingWorld(t, csv)
	var cause api.Cause
	try := func(err error) (time.Duration, operatorsv1alpha1.ClusterServiceVersionStatus, error) {
		live := &operatorsv1alpha1.ClusterServiceVersion{}
		if err := r.client.Get(t.Context(), client.ObjectKeyFromObject(csv), live); err != nil {
			t.Fatal(err)
		}
		o := phase.Input{CSV: live, Now: clock.Now()}
		result, err := r.handleError(t.Context(), &state{Input: o}, phase.KeepAfterError(o, err), err)
		if err := r.client.Get(t.Context(), client.ObjectKeyFromObject(csv), live); err != nil {
			t.Fatal(err)
		}
		cause, _ = api.CauseOf(live)
		return result.RequeueAfter, live.Status, err
	}
	down := apierrors.NewInternalError(errors.New("failed calling webhook a: port 1"))
	if _, status, err := try(down); err == nil || status.Message != "as before" {
		t.Errorf("at first: error %v, message %q", err, status.Message)
	}
	clock.SetTime(noon().Add(29 * time.Second))
	if _, status, err := try(down); err == nil || status.Message != "as before" || cause.Reason != "" {
		t.Errorf("before its time: error %v, message %q, cause %+v", err, status.Message, cause)
	}
	clock.SetTime(noon().Add(30 * time.Second))
	stale := apierrors.NewConflict(schema.GroupResource{}, "kettle", nil)
	if _, status, err := try(stale); !apierrors.IsConflict(err) || status.Message != "as before" {
		t.Errorf("a conflict: error %v, message %q", err, status.Message)
	}
	after, status, err := try(down)
	if err != nil || after != 30*time.Second || status.Message != "as before" {
		t.Errorf("in its time: after %s, error %v, message %q", after, err, status.Message)
	}
	if want := (api.Cause{Reason: "WebhookUnavailable", Detail: "Internal error occurred: failed calling webhook a: port 1", PhaseMessage: "as before"}); cause != want {
		t.Errorf("in its time: cause %+v, want %+v", cause, want)
	}
	shown := cause
	if _, _, err := try(errors.New("failed calling webhook: port 2")); err != nil || cause != shown {
		t.Errorf("other words at once: error %v, cause %+v", err, cause)
	}
	clock.SetTime(noon().Add(time.Minute))
	if _, later, err := try(errors.New("failed calling webhook: port 2")); err != nil || later.Message != "as before" || !strings.HasSuffix(cause.Detail, "port 2") {
		t.Errorf("other words later: error %v, message %q, cause %+v", err, later.Message, cause)
	}
	r.errorTimes.clear(client.ObjectKeyFromObject(csv))
	if _, _, err := try(down); err == nil {
		t.Error("an error after a success is told at once")
	}
}

// TestTroubleAtTheEndOfAPass checks that a timeout is reported, and that the end of the supervisor
// is not.
func TestTroubleAtTheEndOfAPass(t *testing.T) {
	csv := good(succeeded, "InstallSucceeded").CSV
	csv.ResourceVersion = ""
	r, clock := failingWorld(t, csv)
	live := &operatorsv1alpha1.ClusterServiceVersion{}
	if err := r.client.Get(t.Context(), client.ObjectKeyFromObject(csv), live); err != nil {
		t.Fatal(err)
	}
	s := stateAfterError(live, noon())
	clock.SetTime(noon().Add(2 * time.Minute))
	hangs := context.DeadlineExceeded
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := r.handleError(ended, s, phase.KeepAfterError(s.Input, hangs), hangs); !errors.Is(err, hangs) {
		t.Errorf("at the end of the supervisor: %v", err)
	}
	out, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer cancel()
	if _, err := r.handleError(out, s, phase.KeepAfterError(s.Input, hangs), hangs); err != nil {
		t.Errorf("out of time: %v", err)
	}
	if err := r.client.Get(t.Context(), client.ObjectKeyFromObject(csv), live); err != nil {
		t.Fatal(err)
	}
	if cause, _ := api.CauseOf(live); live.Status.Message != "as before" || cause.Detail != hangs.Error() {
		t.Errorf("message %q, cause %+v, want %v", live.Status.Message, cause, hangs)
	}
}
