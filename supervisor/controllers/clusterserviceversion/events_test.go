package clusterserviceversion

import (
	"testing"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/client-go/tools/events"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/controllers/clusterserviceversion/cleanup"
)

// TestEmitCleanup checks the Event of a new status, by the previous one.
func TestEmitCleanup(t *testing.T) {
	const waits = operatorsv1alpha1.CSVReasonWaitingForCleanupToComplete
	held := &api.Cause{Reason: api.ReasonFinalizersRemaining}
	moving, stuck := &cleanup.Report{Message: "2 left"}, &cleanup.Report{Message: "Cup c is held", Cause: held}
	for name, tt := range map[string]struct {
		reason operatorsv1alpha1.ConditionReason
		cause  *api.Cause
		report *cleanup.Report
		want   string
	}{
		"begun":         {operatorsv1alpha1.CSVReasonInstallSuccessful, nil, moving, "Normal WaitingOnCleanup 2 left"},
		"goes on":       {waits, nil, moving, ""},
		"gets stuck":    {waits, nil, stuck, "Warning WaitingOnCleanup Cup c is held"},
		"is stuck":      {waits, held, stuck, ""},
		"begins, stuck": {operatorsv1alpha1.CSVReasonInstallSuccessful, nil, stuck, "Warning WaitingOnCleanup Cup c is held"},
		"failed before": {operatorsv1alpha1.CSVReasonInstallCheckFailed, &api.Cause{Reason: "DeploymentNotAvailable"}, moving, "Normal WaitingOnCleanup 2 left"},
	} {
		csv := kettle()
		csv.Status.Reason = tt.reason
		api.SetCause(csv, tt.cause)
		recorder := events.NewFakeRecorder(1)
		emitCleanup(recorder, csv, tt.report)
		got := ""
		if len(recorder.Events) > 0 {
			got = <-recorder.Events
		}
		if got != tt.want {
			t.Errorf("%s: event %q, want %q", name, got, tt.want)
		}
	}
}
