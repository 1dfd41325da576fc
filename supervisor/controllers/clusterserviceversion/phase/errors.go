package phase

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/api/olmtext"
	"github.com/chandlery/chandlery/supervisor/apiserver/refusal"
	"github.com/chandlery/chandlery/supervisor/operatorproxy"
)

// ErrorDelay is how long temporary errors do not appear in the status. After it, it is the pause
// between two tries, and between two writes.
const ErrorDelay = 30 * time.Second

// AccountError is a refusal of the API server to the ServiceAccount of an OperatorGroup.
type AccountError struct {
	// Account and Group are the names of both.
	Account, Group string
	// Err is the error of the API server.
	Err error
}

// Error returns the account and the error of the API server.
func (e *AccountError) Error() string {
	return fmt.Sprintf("as %s: %v", e.subject(), e.Err)
}

func (e *AccountError) subject() string {
	return fmt.Sprintf("ServiceAccount %s of OperatorGroup %s", e.Account, e.Group)
}

// answer returns the message of the API server alone.
func (e *AccountError) answer() string {
	var answer apierrors.APIStatus
	if errors.As(e.Err, &answer) {
		return answer.Status().Message
	}
	return e.Err.Error()
}

// Unwrap returns the error of the API server.
func (e *AccountError) Unwrap() error { return e.Err }

// AfterError returns the transition after a lasting error. An installation fails; any other work
// keeps the phase.
func AfterError(o Input, err error) Transition {
	switch o.CSV.Status.Phase {
	case operatorsv1alpha1.CSVPhaseInstallReady, operatorsv1alpha1.CSVPhaseInstalling:
		return AfterRefusal(o, err)
	default:
		return KeepAfterError(o, err)
	}
}

// KeepAfterError returns a transition that keeps the phase and its message, with the error as cause.
func KeepAfterError(o Input, err error) Transition {
	t := keepPhase(o)
	if t.Phase == operatorsv1alpha1.CSVPhaseNone {
		t.Phase, t.Reason = operatorsv1alpha1.CSVPhasePending, operatorsv1alpha1.CSVReasonRequirementsUnknown
	}
	t.Message = cmp.Or(t.Message, olmtext.RequirementsUnknown)
	t.Cause = &api.Cause{Reason: reasonOf(err), Detail: err.Error(), PhaseMessage: t.Message}
	t.After = ErrorDelay
	return t
}

// AfterRefusal returns the transition after the API refused an object. A version that runs keeps its
// phase, and its cause has the refusal.
func AfterRefusal(o Input, err error) Transition {
	t := Transition{
		Phase:   operatorsv1alpha1.CSVPhaseFailed,
		Reason:  operatorsv1alpha1.CSVReasonComponentFailed,
		Message: olmtext.StrategyFailed(err.Error()),
		Cause:   &api.Cause{Reason: reasonOf(err), Remedy: remedyOf(err)},
		After:   reinstallDelay,
	}
	if refused, limited := errors.AsType[*AccountError](err); limited && apierrors.IsForbidden(err) {
		t.Reason, t.Message = operatorsv1alpha1.CSVReasonComponentFailedNoRetry, olmtext.AccountRefused(refused.answer())
		t.Cause.Detail = refused.subject() + " lacks a permission"
	}
	if o.CSV.Status.Phase == operatorsv1alpha1.CSVPhaseSucceeded {
		t.Phase, t.Reason = operatorsv1alpha1.CSVPhaseSucceeded, operatorsv1alpha1.CSVReasonInstallSuccessful
		t.Message, t.Cause.Detail = olmtext.Succeeded, "the API server refuses a later change: "+err.Error()
	}
	return t
}

// reasonOf returns the reason of the cause for an error.
func reasonOf(err error) string {
	if _, unknown := errors.AsType[*operatorproxy.UnknownError](err); unknown {
		return api.ReasonProxiesUnknown
	}
	return cmp.Or(string(refusal.OfError(err)), api.ReasonRetrying)
}

// remedyOf returns what to do about a refusal that does not state it; empty for other errors.
func remedyOf(err error) string {
	if !apierrors.IsForbidden(err) {
		return ""
	}
	switch refusal.OfError(err) {
	case refusal.NamespaceTerminating:
		return ""
	case refusal.QuotaExceeded:
		return "raise the quota, or delete objects that count against it"
	case refusal.AdmissionDenied:
		return "change the policy that refuses it, or ask for an exception"
	default: // other refusals of this kind are about permissions
	}
	if _, limited := errors.AsType[*AccountError](err); limited {
		return "grant the ServiceAccount this permission, or name another ServiceAccount in the OperatorGroup"
	}
	return "grant the supervisor this permission"
}
