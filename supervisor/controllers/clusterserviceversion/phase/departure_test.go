package phase

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/api/providedapis"
	"github.com/chandlery/chandlery/supervisor/controllers/clusterserviceversion/versions"
)

func leavingPredecessor(phase operatorsv1alpha1.ClusterServiceVersionPhase, reason operatorsv1alpha1.ConditionReason) func(*Input) {
	return func(o *Input) {
		o.Replacement.Predecessor = &Neighbour{Name: "kettle.v0", Phase: phase, Reason: reason, Deleting: true}
	}
}

// TestWaitsForWhatIsBeingDeleted checks the message of a version whose predecessor is being
// deleted.
func TestWaitsForWhatIsBeingDeleted(t *testing.T) {
	const waits = "all requirements found, waiting for the deletion of the previous version, csv kettle.v0"
	waiting := func(message string) Transition {
		return Transition{Phase: pending, Reason: "AllRequirementsMet", Message: message, Cause: &api.Cause{Reason: "WaitingForPredecessor"}}
	}
	goesOn := Transition{Phase: ready, Reason: "AllRequirementsMet", Message: "all requirements found, attempting install"}
	cases := map[string]struct {
		reason string
		change func(*Input)
		want   Transition
	}{
		"JustNow": {"nothing is known of its clean-up yet", leavingPredecessor(succeeded, "InstallSucceeded"), waiting(waits)},
		"Held": {
			"its own status says what holds it", leavingPredecessor(succeeded, "WaitingOnCleanup"),
			waiting(waits + "; see its status.message for the state of its clean-up (WaitingOnCleanup)"),
		},
		"Failed":     {"it need not succeed any more", leavingPredecessor(broken, "InstallCheckFailed"), waiting(waits)},
		"HandedOver": {"it goes because of this version", leavingPredecessor(deleting, "Replaced"), goesOn},
		"Staying":    {"one that stays hands over by itself", predecessor(succeeded), kept(pending, "RequirementsUnknown")},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Next(good(pending, "RequirementsUnknown", tc.change))); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
	gone := going(version("kettle.v0", "", succeeded))
	if got := ReplacementOf(version("kettle.v1", "kettle.v0", pending), versions.List{gone}); !got.Predecessor.Deleting {
		t.Errorf("the predecessor is on its way out, and %+v does not say so", got.Predecessor)
	}
}

func TestKeptConversionsAreTold(t *testing.T) {
	o := good(succeeded, "InstallSucceeded", claim(providedapis.Static), running, func(o *Input) { o.Webhooks.Converts = []string{"cups.example.com"} })
	got := Next(o)
	if want := "objects of cups.example.com can be used only in their stored version"; got.Cause == nil || !strings.Contains(got.Cause.Detail, want) {
		t.Errorf("Next(...) has the cause %+v, want that %s", got.Cause, want)
	}
}
