package phase

import (
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/api/olmtext"
)

const (
	// installTimeout is how long Deployments may take to become ready, and the pause before an
	// installation with an unready one is repeated.
	installTimeout = 5 * time.Minute
	// disruptionDelay is the pause before the next check of what is unavailable for a moment.
	disruptionDelay = 10 * time.Second
	// probingDelay is the pause before another call of a webhook that has not answered.
	probingDelay = 2 * time.Second
	// requestedDelay is the time between checks of a certificate that cert-manager issues.
	requestedDelay = 5 * time.Second
	// certificatesDelay is the time between checks of certificates. They are in Secrets, and a
	// watch would read all Secrets. A pod that lacks one causes an event of its Deployment sooner.
	certificatesDelay = time.Minute
	// reinstallDelay is the pause before another try of an installation that the API refused. The
	// cause may have changed since.
	reinstallDelay = time.Minute
	// repeatDelay is the pause before an installation is repeated because its Deployments were
	// changed. It prevents a race with another client.
	repeatDelay = 2 * time.Second
	// requirementsDelay is the pause between checks of unmet requirements. It is for those that
	// cannot be watched, such as APIs from discovery.
	requirementsDelay = 30 * time.Second
	// apisDelay is the pause between checks of such APIs by a running version.
	apisDelay = time.Minute
)

// messageReplacementOut is the message of a version that runs again.
const messageReplacementOut = "the replacement was deleted, installing this version again"

// Action is work that a Transition requires.
type Action string

const (
	// Annotate writes the OperatorGroup annotations, the labels of the provided and required APIs, and
	// the cause.
	Annotate Action = "Annotate"
	// PrepareWebhooks applies certificates and Services. Deployments that serve the API server need them to
	// start.
	PrepareWebhooks Action = "PrepareWebhooks"
	// Install applies roles for all namespaces and Deployments, and removes
	// Deployments no longer declared.
	Install Action = "Install"
	// Switch makes the API server use what the Deployments serve.
	Switch Action = "Switch"
	// RemoveDeployments removes the Deployments of a version that must not run.
	RemoveDeployments Action = "RemoveDeployments"
	// RenewCertificates replaces the certificates of a waiting version, and its pods.
	RenewCertificates Action = "RenewCertificates"
	// CopyRBAC updates the roles for all namespaces.
	CopyRBAC Action = "CopyRBAC"
	// DeleteSelf deletes the ClusterServiceVersion.
	DeleteSelf Action = "DeleteSelf"
)

// Transition is the next step: the actions, performed in the current phase, and then the phase to
// write. The phase may stay the same.
type Transition struct {
	// Phase, Reason and Message are the status to write.
	Phase   operatorsv1alpha1.ClusterServiceVersionPhase
	Reason  operatorsv1alpha1.ConditionReason
	Message string
	// Cause is why the version does not continue; nil when it does.
	Cause *api.Cause
	// Actions are performed before the phase is written.
	Actions []Action
	// After is the time until the next reconcile without an event; zero for none.
	After time.Duration
}

// rule is one line of the table. In a phase, the first rule that applies determines the transition.
type rule struct {
	name string
	when func(Input) bool
	then func(Input) Transition
}

// Next returns the transition for an observation. It is total: each phase ends with a rule that
// always applies.
func Next(o Input) Transition {
	t := keepPhase(o)
	for _, r := range rules(o.CSV.Status.Phase) {
		if r.when(o) {
			t = r.then(o)
			break
		}
	}
	t = keepCertificates(t, o)
	if o.Webhooks.Switch.Due && o.Webhooks.Switch.Pause > 0 {
		t = noLater(t, o.Webhooks.Switch.Pause)
	}
	if o.Webhooks.Probing {
		t = noLater(t, probingDelay)
	}
	if o.Webhooks.Certificates.Requested {
		t = noLater(t, requestedDelay)
	}
	if o.Webhooks.Certificates.Present {
		t = noLater(t, certificatesDelay)
	}
	return t
}

// keepCertificates adds the renewal of certificates to the transition of a version that continues to
// wait.
func keepCertificates(t Transition, o Input) Transition {
	if !IsWaiting(o.CSV) || t.Phase != o.CSV.Status.Phase || len(t.Actions) > 0 {
		return t
	}
	if o.Webhooks.Certificates.RenewDue {
		t.Actions = []Action{RenewCertificates}
		return noLater(t, time.Second)
	}
	if at := o.CSV.Status.CertsRotateAt; at != nil && at.After(o.Now) {
		return noLater(t, at.Sub(o.Now))
	}
	return t
}

// noLater sets After to at most d.
func noLater(t Transition, d time.Duration) Transition {
	if t.After == 0 || t.After > d {
		t.After = d
	}
	return t
}

// rules returns the table of a phase. The phases Replacing and Deleting skip the gates: an
// OperatorGroup does not restore a version that another has replaced.
func rules(p operatorsv1alpha1.ClusterServiceVersionPhase) []rule {
	switch p {
	case operatorsv1alpha1.CSVPhasePending:
		return append(gates(), pendingRules()...)
	case operatorsv1alpha1.CSVPhaseInstallReady:
		return append(gates(), installReadyRules()...)
	case operatorsv1alpha1.CSVPhaseInstalling:
		return append(gates(), installingRules()...)
	case operatorsv1alpha1.CSVPhaseSucceeded:
		return append(gates(), succeededRules()...)
	case operatorsv1alpha1.CSVPhaseFailed:
		return append(gates(), failedRules()...)
	case operatorsv1alpha1.CSVPhaseReplacing:
		return replacingRules()
	case operatorsv1alpha1.CSVPhaseDeleting:
		return deletingRules()
	case operatorsv1alpha1.CSVPhaseNone, operatorsv1alpha1.CSVPhaseUnknown:
	}
	return firstRules()
}

func pendingRules() []rule {
	return []rule{
		{"APIs not claimed by the group yet", claimPending, keepPhase},
		{"predecessor not upgradeable", has(refusedUpgrade), then(operatorsv1alpha1.CSVPhasePending,
			operatorsv1alpha1.CSVReasonOperatorConditionNotUpgradeable, refusedUpgrade)},
		{"cannot run, while the replacement can", deadlockedWithSuccessor, then(operatorsv1alpha1.CSVPhaseReplacing,
			operatorsv1alpha1.CSVReasonBeingReplaced, replacedMessage, detailed(deadlock))},
		{"requirements not met", requirementsMissing, then(operatorsv1alpha1.CSVPhasePending,
			operatorsv1alpha1.CSVReasonRequirementsNotMet, fixed(olmtext.RequirementsNotMet), after(requirementsDelay))},
		{"Deployments cannot be derived", badInstall, toBadInstall},
		{"CRD owned by another", crdTaken, toOwnerConflict},
		{"API service owned by another", apiServiceTaken, toAPIServiceConflict},
		{"predecessor being deleted", predecessorDeleting, waitForDeletion},
		{"predecessor is about to be Replacing", predecessorIs(operatorsv1alpha1.CSVPhaseSucceeded), keepPhase},
		{"predecessor not replaced yet", predecessorNotReplaced, waitForPredecessor},
		{"requirements met", always, then(operatorsv1alpha1.CSVPhaseInstallReady,
			operatorsv1alpha1.CSVReasonRequirementsMet, fixed(olmtext.RequirementsMet), detailed(nothingReplaced))},
	}
}

func installReadyRules() []rule {
	return []rule{
		{"Deployments cannot be derived", badInstall, toBadInstall},
		{"object of another owner", foreignObject, then(operatorsv1alpha1.CSVPhaseFailed,
			operatorsv1alpha1.CSVReasonComponentFailed, ownerConflictMessage, after(reinstallDelay))},
		{"pause before repeating", installedJustNow, func(o Input) Transition {
			return with(keepPhase(o), o, remaining(repeatDelay))
		}},
		{"install", always, then(operatorsv1alpha1.CSVPhaseInstalling,
			operatorsv1alpha1.CSVReasonInstallSuccessful, fixed(olmtext.Installing), install)},
	}
}

func installingRules() []rule {
	return []rule{
		{"Deployments cannot be derived", badInstall, toBadInstall},
		{"API service owned by another", apiServiceTaken, toAPIServiceConflict},
		{"object of another owner", foreignObject, then(operatorsv1alpha1.CSVPhaseFailed,
			operatorsv1alpha1.CSVReasonComponentFailed, ownerConflictMessage, after(reinstallDelay))},
		{"ready to serve", switchDue, then(operatorsv1alpha1.CSVPhaseInstalling,
			operatorsv1alpha1.CSVReasonWaiting, problem, detailed(problemDetail), do(Switch), after(time.Second))},
		{"healthy", healthy, to(operatorsv1alpha1.CSVPhaseSucceeded,
			operatorsv1alpha1.CSVReasonInstallSuccessful, olmtext.Succeeded)},
		{"deadline exceeded", deadlineExceeded, then(operatorsv1alpha1.CSVPhaseFailed,
			operatorsv1alpha1.CSVReasonInstallCheckFailed, deadlineMessage, unavailable)},
		{"deployment missing or changed", stale, then(operatorsv1alpha1.CSVPhaseInstallReady,
			operatorsv1alpha1.CSVReasonWaiting, problem)},
		{"API service resources not as applied", servingBroken, then(operatorsv1alpha1.CSVPhaseInstallReady,
			operatorsv1alpha1.CSVReasonWaiting, fixed(olmtext.APIServicesMissing), detailed(brokenMessage))},
		{"timeout", inPhaseFor(installTimeout), then(operatorsv1alpha1.CSVPhaseFailed,
			operatorsv1alpha1.CSVReasonInstallCheckFailed, fixed(olmtext.InstallTimeout), unavailable, detailed(anyProblem))},
		{"not ready yet", always, then(operatorsv1alpha1.CSVPhaseInstalling,
			operatorsv1alpha1.CSVReasonWaiting, problem, detailed(problemDetail), remaining(installTimeout))},
	}
}

func succeededRules() []rule {
	return []rule{
		{"replaced", mayBeReplaced, then(operatorsv1alpha1.CSVPhaseReplacing, operatorsv1alpha1.CSVReasonBeingReplaced, replacedMessage)},
		{"API service resources not as applied", servingBroken, then(operatorsv1alpha1.CSVPhaseFailed,
			operatorsv1alpha1.CSVReasonAPIServiceResourceIssue, brokenMessage)},
		{"certificates due", certsDue, to(operatorsv1alpha1.CSVPhasePending,
			operatorsv1alpha1.CSVReasonNeedsCertRotation, olmtext.CertificatesDue)},
		{"requirements lost", requirementsMissing, then(operatorsv1alpha1.CSVPhaseFailed,
			operatorsv1alpha1.CSVReasonRequirementsNotMet, fixed(olmtext.NoLongerMet))},
		{"object of another owner", foreignObject, then(operatorsv1alpha1.CSVPhaseFailed,
			operatorsv1alpha1.CSVReasonComponentFailed, ownerConflictMessage, after(reinstallDelay))},
		{"webhook missing", webhookMissing, then(operatorsv1alpha1.CSVPhaseInstallReady,
			operatorsv1alpha1.CSVReasonComponentUnhealthy, problem, detailed(problemDetail))},
		{"API server to be switched", switchDue, func(o Input) Transition {
			return with(keepPhase(o), o, do(Switch), after(time.Second))
		}},
		{"deployment changed", deploymentChanged, then(operatorsv1alpha1.CSVPhaseInstallReady,
			operatorsv1alpha1.CSVReasonComponentUnhealthy, problem)},
		{"component unhealthy", not(healthy), then(operatorsv1alpha1.CSVPhaseFailed,
			operatorsv1alpha1.CSVReasonComponentUnhealthy, problem, detailed(problemDetail), unavailable)},
		{"roles for all namespaces out of date", copiesStale, func(o Input) Transition {
			return with(keepPhase(o), o, do(CopyRBAC))
		}},
		{"unavailable for a moment", disrupted, func(o Input) Transition {
			return with(keepPhase(o), o, after(disruptionDelay))
		}},
		{"nothing to do", always, then(operatorsv1alpha1.CSVPhaseSucceeded,
			operatorsv1alpha1.CSVReasonInstallSuccessful, fixed(olmtext.Succeeded), detailed(notUpdated), untilNextCheck)},
	}
}

func failedRules() []rule {
	return []rule{
		{"fail forward", failsForward, then(operatorsv1alpha1.CSVPhaseReplacing,
			operatorsv1alpha1.CSVReasonBeingReplaced, failForwardMessage, detailed(pinNote))},
		{"operator group fits now", failedFor(groupReasons...), to(operatorsv1alpha1.CSVPhasePending,
			operatorsv1alpha1.CSVReasonRequirementsUnknown, olmtext.GroupSupported)},
		{
			"APIs no longer taken", failedFor(operatorsv1alpha1.CSVReasonInterOperatorGroupOwnerConflict),
			to(operatorsv1alpha1.CSVPhasePending, operatorsv1alpha1.CSVReasonRequirementsUnknown, olmtext.NoLongerConflicting),
		},
		{
			"fixed APIs fit now", failedFor(operatorsv1alpha1.CSVReasonCannotModifyStaticOperatorGroupProvidedAPIs),
			to(operatorsv1alpha1.CSVPhasePending, operatorsv1alpha1.CSVReasonRequirementsUnknown, olmtext.StaticSupported),
		},
		{"spec is right now", specCorrected, to(operatorsv1alpha1.CSVPhasePending,
			operatorsv1alpha1.CSVReasonRequirementsUnknown, olmtext.RequirementsUnknown)},
		{"requirements missing", requirementsMissing, then(operatorsv1alpha1.CSVPhasePending,
			operatorsv1alpha1.CSVReasonRequirementsNotMet, fixed(olmtext.StillNotMet))},
		{"Deployments cannot be derived", badInstall, toBadInstall},
		{"CRD owned by another", crdTaken, toOwnerConflict},
		{"API service owned by another", apiServiceTaken, toAPIServiceConflict},
		{"object of another owner remains", foreignObject, then(operatorsv1alpha1.CSVPhaseFailed,
			operatorsv1alpha1.CSVReasonComponentFailed, ownerConflictMessage, after(reinstallDelay))},
		{"API service resources to be repaired", repairDue(servingBroken), then(operatorsv1alpha1.CSVPhasePending,
			operatorsv1alpha1.CSVReasonAPIServiceResourcesNeedReinstall, brokenMessage)},
		{"certificates due", repairDue(certsDue), to(operatorsv1alpha1.CSVPhasePending,
			operatorsv1alpha1.CSVReasonNeedsCertRotation, olmtext.CertificatesStillDue)},
		{"healthy again", healthy, to(operatorsv1alpha1.CSVPhaseSucceeded,
			operatorsv1alpha1.CSVReasonInstallSuccessful, olmtext.Succeeded)},
		{"rights have changed since it was refused", accessChanged, to(operatorsv1alpha1.CSVPhasePending,
			operatorsv1alpha1.CSVReasonDetectedClusterChange, olmtext.ClusterChanged)},
		{"another try due", reinstallDue, then(operatorsv1alpha1.CSVPhasePending,
			operatorsv1alpha1.CSVReasonNeedsReinstall, problem, detailed(problemDetail))},
		{"wait before another try", always, func(o Input) Transition {
			return with(keepPhase(o), o, remaining(reinstallWait(o)))
		}},
	}
}

func replacingRules() []rule {
	return []rule{
		{"replacement vanished", not(hasSuccessor), to(operatorsv1alpha1.CSVPhasePending,
			operatorsv1alpha1.CSVReasonNeedsReinstall, messageReplacementOut)},
		{"predecessor deleted first", hasPredecessor, keepPhase},
		{"replacement succeeded", lastSucceeded, to(operatorsv1alpha1.CSVPhaseDeleting,
			operatorsv1alpha1.CSVReasonReplaced, olmtext.Replaced)},
		{"replacement not there yet", always, keepPhase},
	}
}

func deletingRules() []rule {
	return []rule{
		{"replacement vanished", not(hasSuccessor), to(operatorsv1alpha1.CSVPhasePending,
			operatorsv1alpha1.CSVReasonNeedsReinstall, messageReplacementOut)},
		{"replaced", always, func(o Input) Transition { return with(keepPhase(o), o, do(DeleteSelf)) }},
	}
}
