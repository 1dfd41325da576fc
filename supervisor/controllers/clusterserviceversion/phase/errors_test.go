package phase

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/chandlery/chandlery/supervisor/api"
)

// TestAfterError checks the transition of each phase after lasting errors.
func TestAfterError(t *testing.T) {
	down := errors.New("admission does not answer")
	told := func(phase operatorsv1alpha1.ClusterServiceVersionPhase, reason operatorsv1alpha1.ConditionReason, message string) Transition {
		return Transition{Phase: phase, Reason: reason, Message: message, After: 30 * time.Second, Cause: &api.Cause{Reason: "Retrying", Detail: "admission does not answer", PhaseMessage: message}}
	}
	failed := Transition{Phase: broken, Reason: "InstallComponentFailed", Message: "install strategy failed: admission does not answer", Cause: &api.Cause{Reason: "Retrying"}, After: time.Minute}
	again := good(succeeded, "InstallSucceeded", causing(api.Cause{Reason: "WebhookUnavailable", PhaseMessage: "as before"}))
	again.CSV.Status.Message = "as before; retrying after error: something else"
	cases := map[string]struct {
		reason string
		o      Input
		want   Transition
	}{
		"Installing":   {"an installation fails by it", good(ready, "AllRequirementsMet"), failed},
		"SwitchingOn":  {"telling the API server is part of it", good(installs, "InstallWaiting"), failed},
		"Running":      {"what runs goes on", good(succeeded, "InstallSucceeded"), told(succeeded, "InstallSucceeded", "as before")},
		"AnotherError": {"the status shows the newest error alone", again, told(succeeded, "InstallSucceeded", "as before")},
		"Waiting":      {"nothing was tried", good(pending, "RequirementsNotMet"), told(pending, "RequirementsNotMet", "as before")},
		"Going":        {"it brings no version back", good(deleting, "Replaced"), told(deleting, "Replaced", "as before")},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, AfterError(tc.o, down)); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
	fresh := good(none, "")
	fresh.CSV.Status = operatorsv1alpha1.ClusterServiceVersionStatus{}
	if diff := cmp.Diff(told(pending, "RequirementsUnknown", "requirements not yet checked"), KeepAfterError(fresh, down)); diff != "" {
		t.Errorf("of what has no phase: -want, +got:\n%s", diff)
	}
	if got := keepPhase(again); got.Message != "as before" || got.Cause != nil {
		t.Errorf("when the error is over the message is %q, and the cause %v", got.Message, got.Cause)
	}
	away := apierrors.NewInternalError(errors.New(`failed calling webhook "slow.example": timeout`))
	if got := KeepAfterError(good(succeeded, "InstallSucceeded"), away).Cause.Reason; got != "WebhookUnavailable" {
		t.Errorf("the reason of %v is %s", away, got)
	}
}
