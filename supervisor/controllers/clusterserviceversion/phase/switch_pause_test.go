package phase

import (
	"strings"
	"testing"
	"time"
)

// TestNextWhileSwitchPauses checks that other transitions continue during the pause before a Switch.
func TestNextWhileSwitchPauses(t *testing.T) {
	rests := func(o *Input) {
		o.Webhooks.Switch.Due, o.Webhooks.Switch.Pause = true, 30*time.Second
		o.Webhooks.Switch.Contested = "MutatingWebhookConfiguration cups-x"
	}
	for name, tc := range map[string]struct {
		o    Input
		want Transition
	}{
		"Works":        {o: good(installs, "InstallWaiting", rests), want: Transition{Phase: succeeded, Reason: "InstallSucceeded"}},
		"DoesNotServe": {o: good(installs, "InstallWaiting", rests, notServing), want: Transition{Phase: installs, Reason: "InstallWaiting"}},
		"TimeIsUp":     {o: good(installs, "InstallWaiting", rests, notServing, later(time.Hour)), want: Transition{Phase: broken, Reason: "InstallCheckFailed"}},
		"Succeeded":    {o: good(succeeded, "InstallSucceeded", rests), want: Transition{Phase: succeeded, Reason: "InstallSucceeded"}},
	} {
		t.Run(name, func(t *testing.T) {
			next := Next(tc.o)
			if next.Phase != tc.want.Phase || next.Reason != tc.want.Reason || len(next.Actions) > 0 || next.After != 30*time.Second {
				t.Errorf("%s (%s) with %v after %s", next.Phase, next.Reason, next.Actions, next.After)
			}
			if tc.o.CSV.Status.Phase == succeeded && !strings.Contains(next.Cause.Detail, "another client changes MutatingWebhookConfiguration cups-x") {
				t.Errorf("the cause is %+v", next.Cause)
			}
		})
	}
}
