package clusterserviceversion

import (
	"fmt"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
)

const (
	// installTimeout is how long Deployments may take to become ready, and how
	// long an unready one is left alone before the installation is repeated.
	installTimeout = 5 * time.Minute
	// reinstallDelay is the pause before an installation that the API refused
	// is tried again: what refused it may have been changed meanwhile.
	reinstallDelay = time.Minute
	// repeatDelay is the pause before an installation is repeated because its
	// Deployments did not stay as they were applied. Whoever changes them, it
	// must not become a race.
	repeatDelay = 2 * time.Second
	// requirementsDelay is how long requirements may go unchecked while they
	// are not met. Nearly all are watched; this is for those that cannot be,
	// such as roles granted by hand and APIs known by discovery alone.
	requirementsDelay = 30 * time.Second
)

// Messages that clients and test suites have learnt to look for.
const (
	messageUnknown        = "requirements not yet checked"
	messageNotMet         = "one or more requirements couldn't be found"
	messageMet            = "all requirements found, attempting install"
	messageInstalling     = "waiting for install components to report healthy"
	messageSucceeded      = "install strategy completed with no errors"
	messageReplaced       = "has been replaced by a newer ClusterServiceVersion that has successfully installed."
	messageGroupFits      = "InstallModes now support target namespaces"
	messageNoLonger       = "requirements no longer met"
	messageStillNot       = "requirements not met"
	messageTimeout        = "install timeout"
	messageConflict       = "conflicting CRD owner in namespace"
	messageReplacementOut = "the replacement is gone, installing this version again"
)

// Action is work that a Transition asks for.
type Action string

const (
	// Annotate writes the OperatorGroup annotations.
	Annotate Action = "Annotate"
	// Install applies roles for all namespaces and Deployments, and removes
	// Deployments no longer declared.
	Install Action = "Install"
	// LiftRoles brings the roles for all namespaces up to date.
	LiftRoles Action = "LiftRoles"
	// DeleteSelf deletes the ClusterServiceVersion.
	DeleteSelf Action = "DeleteSelf"
)

// Transition is what to do next: the actions, done in the phase that the object
// is in, then the phase to write. The phase may be the one it has.
type Transition struct {
	// Phase, Reason and Message are the status to write.
	Phase   operatorsv1alpha1.ClusterServiceVersionPhase
	Reason  operatorsv1alpha1.ConditionReason
	Message string
	// Actions are to be done before the phase is written.
	Actions []Action
	// After asks for another look after this time even if nothing happens;
	// zero asks for none.
	After time.Duration
}

// rule is one line of the table: in a phase, the first rule that applies says
// what comes next.
type rule struct {
	name string
	when func(Observation) bool
	then func(Observation) Transition
}

// Next returns the transition that an observation calls for. It is total: each
// phase ends with a rule that always applies.
func Next(o Observation) Transition {
	for _, r := range rules(o.CSV.Status.Phase) {
		if r.when(o) {
			return r.then(o)
		}
	}
	return stay(o)
}

// rules is the table. Phases on the way out are past the gates: a
// ClusterServiceVersion that another has taken over from is not brought back by
// an OperatorGroup.
func rules(phase operatorsv1alpha1.ClusterServiceVersionPhase) []rule {
	switch phase {
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
	return []rule{{"first sight", always, to(operatorsv1alpha1.CSVPhasePending,
		operatorsv1alpha1.CSVReasonRequirementsUnknown, messageUnknown)}}
}

func pendingRules() []rule {
	return []rule{
		{"requirements not met", requirementsMissing, then(operatorsv1alpha1.CSVPhasePending,
			operatorsv1alpha1.CSVReasonRequirementsNotMet, fixed(messageNotMet), after(requirementsDelay))},
		{"CRD owned by another", crdTaken, toOwnerConflict},
		{"predecessor will turn Replacing by itself", predecessorIs(operatorsv1alpha1.CSVPhaseSucceeded), stay},
		{"predecessor not Replacing", predecessorInTheWay, waitForPredecessor},
		{"requirements met", always, to(operatorsv1alpha1.CSVPhaseInstallReady,
			operatorsv1alpha1.CSVReasonRequirementsMet, messageMet)},
	}
}

func installReadyRules() []rule {
	return []rule{
		{"foreign object in the way", foreignObject, then(operatorsv1alpha1.CSVPhaseFailed,
			operatorsv1alpha1.CSVReasonComponentFailed, foreignMessage, after(reinstallDelay))},
		{"rest before repeating", cameBack, func(o Observation) Transition {
			return with(stay(o), o, remaining(repeatDelay))
		}},
		{"install", always, then(operatorsv1alpha1.CSVPhaseInstalling,
			operatorsv1alpha1.CSVReasonInstallSuccessful, fixed(messageInstalling), do(Install))},
	}
}

func installingRules() []rule {
	return []rule{
		{"healthy", healthy, to(operatorsv1alpha1.CSVPhaseSucceeded,
			operatorsv1alpha1.CSVReasonInstallSuccessful, messageSucceeded)},
		{"gave up", exhausted, then(operatorsv1alpha1.CSVPhaseFailed,
			operatorsv1alpha1.CSVReasonInstallCheckFailed, problem("install failed: "))},
		{"deployment missing or changed", stale, then(operatorsv1alpha1.CSVPhaseInstallReady,
			operatorsv1alpha1.CSVReasonWaiting, problem("installing: "))},
		{"timeout", inPhaseFor(installTimeout), to(operatorsv1alpha1.CSVPhaseFailed,
			operatorsv1alpha1.CSVReasonInstallCheckFailed, messageTimeout)},
		{"not ready yet", always, then(operatorsv1alpha1.CSVPhaseInstalling,
			operatorsv1alpha1.CSVReasonWaiting, problem("installing: "), remaining(installTimeout))},
	}
}

func succeededRules() []rule {
	return []rule{
		{"replaced", hasSuccessor, then(operatorsv1alpha1.CSVPhaseReplacing,
			operatorsv1alpha1.CSVReasonBeingReplaced, func(o Observation) string {
				return "being replaced by csv: " + o.Replacement.Successor.Name
			})},
		{"requirements lost", requirementsMissing, to(operatorsv1alpha1.CSVPhaseFailed,
			operatorsv1alpha1.CSVReasonRequirementsNotMet, messageNoLonger)},
		{"foreign object in the way", foreignObject, then(operatorsv1alpha1.CSVPhaseFailed,
			operatorsv1alpha1.CSVReasonComponentFailed, foreignMessage, after(reinstallDelay))},
		{"component unhealthy", not(healthy), then(operatorsv1alpha1.CSVPhaseFailed,
			operatorsv1alpha1.CSVReasonComponentUnhealthy, problem("installing: "))},
		{"roles for all namespaces out of date", liftStale, func(o Observation) Transition {
			return with(stay(o), o, do(LiftRoles))
		}},
		{"nothing to do", always, stay},
	}
}

func failedRules() []rule {
	return []rule{
		{"operator group fits now", failedFor(groupReasons...), to(operatorsv1alpha1.CSVPhasePending,
			operatorsv1alpha1.CSVReasonRequirementsUnknown, messageGroupFits)},
		{"spec is right now", failedFor(specReasons...), to(operatorsv1alpha1.CSVPhasePending,
			operatorsv1alpha1.CSVReasonRequirementsUnknown, messageUnknown)},
		{"requirements missing", requirementsMissing, to(operatorsv1alpha1.CSVPhasePending,
			operatorsv1alpha1.CSVReasonRequirementsNotMet, messageStillNot)},
		{"CRD owned by another", crdTaken, toOwnerConflict},
		{"foreign object still in the way", foreignObject, then(operatorsv1alpha1.CSVPhaseFailed,
			operatorsv1alpha1.CSVReasonComponentFailed, foreignMessage, after(reinstallDelay))},
		{"healthy again", healthy, to(operatorsv1alpha1.CSVPhaseSucceeded,
			operatorsv1alpha1.CSVReasonInstallSuccessful, messageSucceeded)},
		{"worth another try", reinstallDue, then(operatorsv1alpha1.CSVPhasePending,
			operatorsv1alpha1.CSVReasonNeedsReinstall, problem("installing: "))},
		{"wait before another try", always, func(o Observation) Transition {
			return with(stay(o), o, remaining(reinstallWait(o)))
		}},
	}
}

func replacingRules() []rule {
	return []rule{
		{"leaf goes first", hasPredecessor, stay},
		{"replacement vanished", not(hasSuccessor), to(operatorsv1alpha1.CSVPhasePending,
			operatorsv1alpha1.CSVReasonNeedsReinstall, messageReplacementOut)},
		{"replacement succeeded", lastSucceeded, to(operatorsv1alpha1.CSVPhaseDeleting,
			operatorsv1alpha1.CSVReasonReplaced, messageReplaced)},
		{"replacement not there yet", always, stay},
	}
}

func deletingRules() []rule {
	return []rule{
		{"replacement vanished", not(hasSuccessor), to(operatorsv1alpha1.CSVPhasePending,
			operatorsv1alpha1.CSVReasonNeedsReinstall, messageReplacementOut)},
		{"replaced", always, func(o Observation) Transition { return with(stay(o), o, do(DeleteSelf)) }},
	}
}

func toOwnerConflict(o Observation) Transition {
	return Transition{
		Phase:   operatorsv1alpha1.CSVPhaseFailed,
		Reason:  operatorsv1alpha1.CSVReasonOwnerConflict,
		Message: messageConflict + ": " + o.Requirements.CRDConflict,
	}
}

// waitForPredecessor says why an upgrade does not move: a predecessor that has
// not succeeded does not hand over, and that would otherwise not be seen here.
func waitForPredecessor(o Observation) Transition {
	p := o.Replacement.Predecessor
	phase := p.Phase
	if phase == operatorsv1alpha1.CSVPhaseNone {
		phase = "not processed yet"
	}
	return Transition{
		Phase:  operatorsv1alpha1.CSVPhasePending,
		Reason: operatorsv1alpha1.CSVReasonRequirementsMet,
		Message: fmt.Sprintf("all requirements found, waiting for csv %s (%s), which this one replaces, "+
			"to succeed or to be deleted", p.Name, phase),
	}
}

// installFailure is the transition after an installation that the API refused.
func installFailure(err error) Transition {
	return Transition{
		Phase:   operatorsv1alpha1.CSVPhaseFailed,
		Reason:  operatorsv1alpha1.CSVReasonComponentFailed,
		Message: "install strategy failed: " + err.Error(),
		After:   reinstallDelay,
	}
}
