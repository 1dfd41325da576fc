package phase

import (
	"fmt"
	"strings"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/api/olmtext"
)

func toOwnerConflict(o Input) Transition {
	return Transition{
		Phase:   operatorsv1alpha1.CSVPhaseFailed,
		Reason:  operatorsv1alpha1.CSVReasonOwnerConflict,
		Message: olmtext.CRDConflict,
		Cause:   &api.Cause{Reason: string(operatorsv1alpha1.CSVReasonOwnerConflict), Detail: o.Requirements.CRDConflict},
	}
}

// toAPIServiceConflict returns a transition for an API service of another owner. Such an API service
// is not watched, so it is checked again after a pause.
func toAPIServiceConflict(o Input) Transition {
	return Transition{
		Phase:   operatorsv1alpha1.CSVPhaseFailed,
		Reason:  operatorsv1alpha1.CSVReasonOwnerConflict,
		Message: olmtext.APIServiceConflict,
		Cause:   &api.Cause{Reason: string(operatorsv1alpha1.CSVReasonOwnerConflict), Detail: o.Webhooks.Conflict},
		After:   reinstallDelay,
	}
}

// toBadInstall returns a transition that waits for a correction of the settings of the Deployments.
func toBadInstall(o Input) Transition {
	return Transition{
		Phase:   operatorsv1alpha1.CSVPhasePending,
		Reason:  operatorsv1alpha1.CSVReasonNeedsReinstall,
		Message: olmtext.DeploymentsInvalid,
		Cause:   &api.Cause{Reason: string(operatorsv1alpha1.CSVReasonNeedsReinstall), Detail: o.Components.Invalid},
	}
}

// waitForPredecessor returns a transition that states why an upgrade does not continue: a predecessor
// that has not succeeded is not replaced.
func waitForPredecessor(o Input) Transition {
	p := o.Replacement.Predecessor
	phase := string(p.Phase)
	if p.Phase == operatorsv1alpha1.CSVPhaseNone {
		phase = "not processed yet"
	}
	message := fmt.Sprintf("all requirements found, waiting for the previous version, csv %s (%s), "+
		"to succeed or to be deleted", p.Name, phase)
	cause := &api.Cause{Reason: api.ReasonWaitingForPredecessor}
	if p.Phase == operatorsv1alpha1.CSVPhaseFailed && !failForwardAllowed(o) {
		cause.Remedy = fmt.Sprintf("to replace it as it is, set spec.upgradeStrategy: %s on OperatorGroup %s",
			operatorsv1.UpgradeStrategyUnsafeFailForward, o.Groups[0].Name)
		message += "; " + cause.Remedy
	}
	return Transition{
		Phase:   operatorsv1alpha1.CSVPhasePending,
		Reason:  operatorsv1alpha1.CSVReasonRequirementsMet,
		Message: message,
		Cause:   cause,
	}
}

// waitForDeletion returns a transition that waits for the clean-up after the predecessor. It refers to
// the status of the predecessor, since what that waits for changes every few seconds.
func waitForDeletion(o Input) Transition {
	p := o.Replacement.Predecessor
	message := fmt.Sprintf("all requirements found, waiting for the deletion of the previous version, csv %s", p.Name)
	if p.Reason == operatorsv1alpha1.CSVReasonWaitingForCleanupToComplete {
		message += fmt.Sprintf("; see its status.message for the state of its clean-up (%s)", p.Reason)
	}
	return Transition{
		Phase:   operatorsv1alpha1.CSVPhasePending,
		Reason:  operatorsv1alpha1.CSVReasonRequirementsMet,
		Message: message,
		Cause:   &api.Cause{Reason: api.ReasonWaitingForPredecessor},
	}
}

// nothingReplaced returns an error in spec.replaces, which does not prevent the installation.
func nothingReplaced(o Input) string {
	switch {
	case len(o.Replacement.Cycle) > 0:
		return fmt.Sprintf("spec.replaces forms a cycle (%s), in which the youngest version replaces the others", strings.Join(o.Replacement.Cycle, ", "))
	case o.Replacement.MissingPredecessor != "":
		return fmt.Sprintf("spec.replaces names csv %s, which is not in this namespace: nothing is replaced", o.Replacement.MissingPredecessor)
	case o.CSV.Spec.Replaces == o.CSV.Name:
		return "spec.replaces names this version itself: nothing is replaced"
	}
	return ""
}

func replacedMessage(o Input) string {
	return olmtext.BeingReplaced(o.Replacement.Successor.Name)
}

func failForwardMessage(o Input) string {
	if o.Replacement.Pinned {
		return replacedMessage(o)
	}
	return olmtext.FailForward(o.Replacement.Successor.Name)
}

// pinNote returns why a failed version is replaced although failed versions may not be.
func pinNote(o Input) string {
	if o.Replacement.Pinned {
		return "the Subscription is pinned to " + o.Replacement.Successor.Name
	}
	return ""
}

// deadlock returns why a waiting version is replaced.
func deadlock(o Input) string {
	return fmt.Sprintf("the requirements of %s are met while those of this version are not", o.Replacement.Successor.Name)
}

func refusedUpgrade(o Input) string {
	if o.Replacement.PredecessorNotUpgradeable == "" {
		return ""
	}
	return olmtext.NotUpgradeable(o.Replacement.PredecessorNotUpgradeable)
}

// notUpdated returns why the Deployments of a version that runs are not updated, or which object another
// client changes back.
func notUpdated(o Input) string {
	if o.Webhooks.Switch.Contested != "" {
		return fmt.Sprintf("another client changes %s after each correction, so the supervisor corrects it less often: "+
			"find the client in its managedFields, and add an exception there", o.Webhooks.Switch.Contested)
	}
	if o.Components.Invalid != "" {
		return "the Deployments are not updated: " + o.Components.Invalid
	}
	if o.Webhooks.Certificates.NotIssued != "" {
		return "the supervisor still issues the certificates: " + o.Webhooks.Certificates.NotIssued
	}
	return ""
}
