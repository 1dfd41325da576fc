package phase

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/api/providedapis"
)

// transitionCase is a row of the table of phases.
type transitionCase struct {
	reason string
	o      Input
	want   Transition
}

func checkTransitions(t *testing.T, cases map[string]transitionCase) {
	t.Helper()
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Next(tc.o)); diff != "" {
				t.Errorf("%s\nNext(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestNextForWhatServes(t *testing.T) {
	checkTransitions(t, map[string]transitionCase{
		"InvalidWebhooks": {
			"what is wrong is in the spec", good(succeeded, "InstallSucceeded", invalidWebhook),
			Transition{Phase: broken, Reason: "InvalidWebhookDescription", Message: "CSV contains repeated WebhookDescription name", Cause: detail("InvalidWebhookDescription", "spec.webhookdefinitions[1].generateName is used twice")},
		},
		"InvalidWebhooksCorrected": {
			"and has been corrected", good(broken, "InvalidWebhookDescription"),
			Transition{Phase: pending, Reason: "RequirementsUnknown", Message: "requirements not yet checked"},
		},
		"PendingServiceTaken": {
			"the API belongs to another", good(pending, "RequirementsUnknown", serviceTaken),
			Transition{
				Phase: broken, Reason: "OwnerConflict",
				Message: "unable to adopt APIService", Cause: detail("OwnerConflict", "v1.tea.example.com belongs to csv pot.v1"), After: reinstallDelay,
			},
		},
		"FailedServiceTaken": {
			"and goes on to", good(broken, "OwnerConflict", serviceTaken),
			Transition{
				Phase: broken, Reason: "OwnerConflict",
				Message: "unable to adopt APIService", Cause: detail("OwnerConflict", "v1.tea.example.com belongs to csv pot.v1"), After: reinstallDelay,
			},
		},
		"InstallReady": {
			"what serves comes before what runs", good(ready, "AllRequirementsMet", declaresWebhook, changed),
			Transition{
				Phase: installs, Reason: "InstallSucceeded", Message: "waiting for install components to report healthy",
				Actions: []Action{PrepareWebhooks, Install},
			},
		},
		"InstallingServiceTaken": {
			"somebody was quicker", good(installs, "InstallWaiting", serviceTaken),
			Transition{
				Phase: broken, Reason: "OwnerConflict",
				Message: "unable to adopt APIService", Cause: detail("OwnerConflict", "v1.tea.example.com belongs to csv pot.v1"), After: reinstallDelay,
			},
		},
		"InstallingSwitch": {
			"what runs is used", good(installs, "InstallWaiting", toSwitch),
			Transition{
				Phase: installs, Reason: "InstallWaiting", Message: "webhooks not installed",
				Actions: []Action{Switch}, After: time.Second,
			},
		},
		"InstallingNotYetSwitch": {
			"and not before it runs", good(installs, "InstallWaiting", toSwitch, waiting),
			Transition{
				Phase: installs, Reason: "InstallWaiting", After: installTimeout - time.Minute,
				Message: "installing: waiting for deployment kettle to become ready: deployment \"kettle\" not available: none up",
			},
		},
		"InstallingNotServing": {
			"the API server does not reach it yet", good(installs, "InstallWaiting", notServing),
			Transition{
				Phase: installs, Reason: "InstallWaiting", Message: "apiServices not installed",
				After: installTimeout - time.Minute,
			},
		},
		"InstallingProbing": {
			"nothing tells when a webhook begins to answer", good(installs, "InstallWaiting", notServing, probing),
			Transition{Phase: installs, Reason: "InstallWaiting", Message: "apiServices not installed", After: probingDelay},
		},
		"FailedProbing": {
			"nor here", good(broken, "ComponentUnhealthy", notServing, probing),
			Transition{Phase: broken, Reason: "ComponentUnhealthy", Message: "as before", After: probingDelay},
		},
		"InstallingBroken": {
			"and what it needs is made again", good(installs, "InstallWaiting", serviceBroken),
			Transition{Phase: ready, Reason: "InstallWaiting", Message: "apiServices not installed", Cause: detail("InstallWaiting", "secret kettle-service-cert is gone")},
		},
		"SucceededBroken": {
			"something behind an API service is gone", good(succeeded, "InstallSucceeded", serviceBroken),
			Transition{Phase: broken, Reason: "APIServiceResourceIssue", Message: "secret kettle-service-cert is gone"},
		},
		"FailedBroken": {
			"it can be made again", good(broken, "APIServiceResourceIssue", serviceBroken),
			Transition{Phase: pending, Reason: "APIServiceResourcesNeedReinstall", Message: "secret kettle-service-cert is gone"},
		},
		"FailedBrokenRefused": {
			"but what the API refused rests", good(broken, "InstallComponentFailed", serviceBroken, later(-30*time.Second)),
			Transition{Phase: broken, Reason: "InstallComponentFailed", Message: "as before", After: 30 * time.Second},
		},
		"SucceededCertsDue": {
			"certificates are replaced", good(succeeded, "InstallSucceeded", oldCerts),
			Transition{Phase: pending, Reason: "NeedsCertRotation", Message: "CSV owns resources that require a cert refresh"},
		},
		"FailedCertsDue": {
			"in time, whatever else is wrong", good(broken, "ComponentUnhealthy", oldCerts, waiting),
			Transition{Phase: pending, Reason: "NeedsCertRotation", Message: "owned APIServices need cert refresh"},
		},
		"SucceededWebhookMissing": {
			"is made again at once", good(succeeded, "InstallSucceeded", webhookGone),
			Transition{Phase: ready, Reason: "ComponentUnhealthy", Message: "webhooks not installed", Cause: detail("ComponentUnhealthy", "webhooks not installed")},
		},
		"SucceededNotServing": {
			"is not healthy", good(succeeded, "InstallSucceeded", notServing),
			Transition{Phase: broken, Reason: "ComponentUnhealthy", Message: "apiServices not installed"},
		},
		"SucceededSwitch": {
			"the API server is told again", good(succeeded, "InstallSucceeded", toSwitch),
			Transition{Phase: succeeded, Reason: "InstallSucceeded", Message: "as before", Actions: []Action{Switch}, After: time.Second},
		},
		"SucceededDisrupted": {
			"pods that move are no failure", good(succeeded, "InstallSucceeded", moving),
			Transition{Phase: succeeded, Reason: "InstallSucceeded", Message: "as before", After: disruptionDelay},
		},
		"SucceededRotatesInTime": {
			"looks again when a certificate is due", good(succeeded, "InstallSucceeded", certificates),
			Transition{Phase: succeeded, Reason: "InstallSucceeded", Message: "install strategy completed with no errors", After: time.Hour},
		},
	})
}

func TestNextForClaims(t *testing.T) {
	const taken, fixed = "intersecting operatorgroups provide the same apis", "static provided api operatorgroup cannot be modified by these apis"
	checkTransitions(t, map[string]transitionCase{
		"Labels": {
			"the APIs are told by labels", good(pending, "RequirementsUnknown", mislabelled), kept(pending, "RequirementsUnknown", Annotate),
		},
		"PendingUnclaimed": {
			"the group goes first", good(pending, "RequirementsUnknown", claim(providedapis.Add)), kept(pending, "RequirementsUnknown"),
		},
		"SucceededUnclaimed": {
			"what runs goes on", good(succeeded, "InstallSucceeded", claim(providedapis.Add)),
			Transition{Phase: succeeded, Reason: "InstallSucceeded", Message: "install strategy completed with no errors"},
		},
		"Taken": {
			"another group has the API", good(pending, "RequirementsUnknown", claim(providedapis.Conflict)),
			Transition{Phase: broken, Reason: "InterOperatorGroupOwnerConflict", Message: taken, Cause: detail("InterOperatorGroupOwnerConflict", takenDetail)},
		},
		"TakenWhileRunning": {
			"what must not run is taken away", good(succeeded, "InstallSucceeded", claim(providedapis.Remove), running),
			Transition{Phase: broken, Reason: "InterOperatorGroupOwnerConflict", Message: taken, Cause: detail("InterOperatorGroupOwnerConflict", takenDetail), Actions: []Action{RemoveDeployments}},
		},
		"TakenNoMore": {
			"the other group is gone", good(broken, "InterOperatorGroupOwnerConflict"),
			Transition{Phase: pending, Reason: "RequirementsUnknown", Message: "OperatorGroup no longer intersecting with conflicting owner"},
		},
		"Fixed": {
			"an administrator has fixed the APIs", good(installs, "InstallWaiting", claim(providedapis.Static), running),
			Transition{
				Phase: broken, Reason: "CannotModifyStaticOperatorGroupProvidedAPIs", Message: fixed, Cause: detail("CannotModifyStaticOperatorGroupProvidedAPIs", staticDetail), Actions: []Action{RemoveDeployments},
			},
		},
		"FixedFits": {
			"and has added this one", good(broken, "CannotModifyStaticOperatorGroupProvidedAPIs"),
			Transition{
				Phase: pending, Reason: "RequirementsUnknown",
				Message: "static OperatorGroup and intersecting groups now support providedAPIs",
			},
		},
	})
}

func TestNextForUpgrades(t *testing.T) {
	met := "all requirements found, attempting install"
	checkTransitions(t, map[string]transitionCase{
		"NotUpgradeable": {
			"the operator says no", good(pending, "RequirementsUnknown", predecessor(succeeded), refusing, lacking),
			Transition{Phase: pending, Reason: "OperatorConditionNotUpgradeable", Message: "operator is not upgradeable: brewing"},
		},
		"UpgradeableAgain": {
			"and then nothing any more", good(pending, "OperatorConditionNotUpgradeable", predecessor(replacing)),
			Transition{Phase: ready, Reason: "AllRequirementsMet", Message: met},
		},
		"SucceededHeld": {
			"it does not hand over and is looked after", good(succeeded, "InstallSucceeded", successor(pending), holding),
			Transition{Phase: succeeded, Reason: "InstallSucceeded", Message: "install strategy completed with no errors"},
		},
		"FailForward": {
			"a failed version may be replaced", good(broken, "InstallCheckFailed", failingForward, successor(pending), waiting),
			Transition{
				Phase: replacing, Reason: "BeingReplaced",
				Message: "Fail Forward is enabled, allowing Failed csv to be replaced by csv: kettle.v2",
			},
		},
		"PinnedForward": {
			"so may one whose package is pinned to the next", good(broken, "InstallCheckFailed", pinnedToSuccessor, successor(pending), waiting),
			Transition{
				Phase: replacing, Reason: "BeingReplaced",
				Message: "being replaced by csv: kettle.v2", Cause: detail("BeingReplaced", "the Subscription is pinned to kettle.v2"),
			},
		},
		"FailForwardHeld": {
			"unless it says no", good(broken, "ComponentUnhealthy", failingForward, successor(pending), holding, waiting),
			Transition{Phase: broken, Reason: "ComponentUnhealthy", Message: "as before", After: installTimeout - time.Minute},
		},
		"NoFailForward": {
			"a failed version stays", good(broken, "ComponentUnhealthy", successor(pending), waiting),
			Transition{Phase: broken, Reason: "ComponentUnhealthy", Message: "as before", After: installTimeout - time.Minute},
		},
		"PredecessorFailedForward": {
			"what is to be done is not said where it has been", good(pending, "RequirementsUnknown", predecessor(broken), failingForward),
			Transition{
				Phase: pending, Reason: "AllRequirementsMet",
				Message: "all requirements found, waiting for the previous version, csv kettle.v0 (Failed), to succeed or to be deleted",
				Cause:   &api.Cause{Reason: "WaitingForPredecessor"},
			},
		},
		"Outlived": {
			"the upgrade took away what it needs", good(pending, "RequirementsNotMet", lacking, readySuccessor),
			Transition{
				Phase: replacing, Reason: "BeingReplaced",
				Message: "being replaced by csv: kettle.v2", Cause: detail("BeingReplaced", "the requirements of kettle.v2 are met while those of this version are not"),
			},
		},
		"BothLack": {
			"neither can run", good(pending, "RequirementsNotMet", lacking, successor(pending)),
			Transition{
				Phase: pending, Reason: "RequirementsNotMet", Message: "one or more requirements couldn't be found", After: requirementsDelay,
			},
		},
		"Circle": {
			"is said, and ends with the youngest", good(pending, "RequirementsUnknown", circular),
			Transition{
				Phase: ready, Reason: "AllRequirementsMet",
				Message: met, Cause: detail("AllRequirementsMet", "spec.replaces forms a cycle (kettle.v1, kettle.v2), in which the youngest version replaces the others"),
			},
		},
		"Vanished": {
			"there is nothing to replace", good(pending, "RequirementsUnknown", vanished),
			Transition{
				Phase: ready, Reason: "AllRequirementsMet",
				Message: met, Cause: detail("AllRequirementsMet", "spec.replaces names csv kettle.v0, which is not in this namespace: nothing is replaced"),
			},
		},
		"BadConfig": {
			"nothing is installed by halves", good(pending, "RequirementsUnknown", badConfig),
			Transition{
				Phase: pending, Reason: "NeedsReinstall",
				Message: "calculated deployment install is bad", Cause: detail("NeedsReinstall", "annotation chandlery.dev/config is no JSON"),
			},
		},
		"BadConfigInstalling": {
			"nor gone on with", good(installs, "InstallWaiting", badConfig),
			Transition{
				Phase: pending, Reason: "NeedsReinstall",
				Message: "calculated deployment install is bad", Cause: detail("NeedsReinstall", "annotation chandlery.dev/config is no JSON"),
			},
		},
		"BadConfigRunning": {
			"what runs is not touched", good(succeeded, "InstallSucceeded", badConfig),
			Transition{
				Phase: succeeded, Reason: "InstallSucceeded", Message: "install strategy completed with no errors", Cause: detail("InstallSucceeded", "the Deployments are not updated: annotation chandlery.dev/config is no JSON"),
			},
		},
	})
}
