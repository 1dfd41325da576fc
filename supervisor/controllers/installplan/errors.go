package installplan

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"

	"github.com/chandlery/chandlery/bundles/image"
	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/crdguard"
	"github.com/chandlery/chandlery/supervisor/plan"
	"github.com/chandlery/chandlery/supervisor/refusal"
)

// stepError is a step that could not be applied.
type stepError struct {
	step *operatorsv1alpha1.Step
	err  error
	// advice is what to do about it; empty when the error states it. It is not in the text of the error.
	advice string
}

// Error names the step the way the plan shows it.
func (e *stepError) Error() string {
	r := e.step.Resource
	text := strings.TrimSuffix(fmt.Sprintf("%s: %v", e.subject(), e.err), ".")
	if apimeta.IsNoMatchError(e.err) {
		text = fmt.Sprintf("%s: GroupVersionKind %s/%s, Kind=%s not found on the cluster. This API may have been deprecated and removed, see https://kubernetes.io/docs/reference/using-api/deprecation-guide/ for more information.", e.subject(), r.Group, r.Version, r.Kind)
	}
	return text
}

// subject is what the message begins with: which step failed, but not why.
func (e *stepError) subject() string {
	if apimeta.IsNoMatchError(e.err) {
		return notServed(e.step)
	}
	return notApplied(e.step)
}

func notServed(s *operatorsv1alpha1.Step) string {
	return fmt.Sprintf("api-server resource not found installing %s %s", s.Resource.Kind, s.Resource.Name)
}

func notApplied(s *operatorsv1alpha1.Step) string {
	return fmt.Sprintf("error applying %s %s of %s", s.Resource.Kind, s.Resource.Name, s.Resolving)
}

// Unwrap gives the cause.
func (e *stepError) Unwrap() error { return e.err }

var (
	// errUnsupported says that a bundle brings an object of a kind that a plan may
	// not hold.
	errUnsupported = errors.New("a bundle may not bring objects of this kind")
	// errNamesRefused says that the API server does not serve a
	// CustomResourceDefinition because another one has its names.
	errNamesRefused = errors.New("its names are not accepted")
	// errOwnerGone says that the version which a plan installs is no longer there.
	errOwnerGone = errors.New("the ClusterServiceVersion that is to own it is gone")
	// errForeign says that an object belongs to somebody else.
	errForeign = errors.New("it is not this operator's")
	// errUnsafe says that a CustomResourceDefinition would do damage.
	errUnsafe = errors.New("the CustomResourceDefinition is left as it is")
	// errOwnRead says that the supervisor could not read what is there, for which it
	// has rights of its own.
	errOwnRead = errors.New("reading")
	// errUnmade says that a plan refers to a Secret that its user has to make.
	errUnmade = errors.New("it has to be there before the plan")
)

// Texts of a plan's messages.
const (
	// retrying comes before an error that is tried again.
	retrying = "retrying execution due to error: "
	// toApprove tells how a plan goes on that waits for its approval.
	toApprove = "the InstallPlan needs approval: approve it by setting spec.approved to true"
	// remedy tells how to go on after a failure that ended the plan, and remedyContent
	// after one that lies in what the plan was made from.
	remedy        = "; fix the cause, and the plan goes on by itself within minutes; deleting the InstallPlan tries again at once"
	remedyContent = "; fix the cause and delete the InstallPlan to try again"
)

// final reports whether an error lies in the plan itself, which no try can fix.
func final(err error) bool {
	if refused, ok := errors.AsType[*crdguard.RefusalError](err); ok && refused.Permanent() {
		return true
	}
	if unfit, ok := errors.AsType[*image.Error](err); ok && !unfit.MayPass() {
		return true
	}
	return errors.Is(err, errUnsupported) || errors.Is(err, plan.ErrManifest) ||
		errors.Is(err, plan.ErrContentChanged) || errors.Is(err, plan.ErrNoInlineManifests)
}

// causeOf returns the cause of a plan whose step with an index failed.
func causeOf(failed *stepError, index int) *api.Cause {
	return &api.Cause{Reason: reasonOf(failed.err), Step: new(index), Remedy: failed.advice, Final: final(failed.err)}
}

// reasonOf returns the reason of a cause for the error of a step.
func reasonOf(err error) string {
	if _, refused := errors.AsType[*crdguard.RefusalError](err); refused || errors.Is(err, errUnsafe) {
		return api.ReasonDefinitionRefused
	}
	if failed, is := errors.AsType[*image.Error](err); is {
		if failed.MayPass() {
			return api.ReasonBundleUnpackFailed
		}
		return api.ReasonContentInvalid
	}
	for _, known := range []struct {
		err    error
		reason string
	}{
		{errUnsupported, api.ReasonKindNotAllowed},
		{errForeign, api.ReasonObjectOwnedByOther},
		{errNamesRefused, api.ReasonObjectOwnedByOther},
		{errUnmade, api.ReasonSecretMissing},
		{plan.ErrManifest, api.ReasonContentInvalid},
		{plan.ErrContentChanged, api.ReasonContentInvalid},
		{plan.ErrNoInlineManifests, api.ReasonContentInvalid},
	} {
		if errors.Is(err, known.err) {
			return known.reason
		}
	}
	if apimeta.IsNoMatchError(err) {
		return api.ReasonAPINotFound
	}
	if reason := refusal.OfError(err); reason != "" {
		return string(reason)
	}
	return api.ReasonStepFailed
}

func remedyFor(err error) string {
	if failed, ok := errors.AsType[*stepError](err); ok && failed.advice != "" {
		return "; " + failed.advice
	}
	if final(err) {
		return remedyContent
	}
	return remedy
}

// terminal says whether an error ends the plan. What the user or the bundle's
// author has to fix does, though only once the cluster had retryTimeout to get
// ready (an API may be registered a moment later; elapsed is how long the step
// has been failing); what passes by itself, such as a timeout, and what others
// decide who may decide otherwise (missing rights, quotas, admission), never does.
//
// What the rules for CustomResourceDefinitions refuse ends the plan at once: an
// administrator has to decide, and the plan continues if the cause is removed.
func terminal(err error, elapsed, retryTimeout time.Duration) bool {
	if _, refused := errors.AsType[*crdguard.RefusalError](err); refused || final(err) {
		return true
	}
	if denied(err) || passing(err) {
		return false
	}
	return lasting(err) && elapsed >= retryTimeout
}

// lasting reports whether a user has to fix something before a try can succeed.
func lasting(err error) bool {
	return errors.Is(err, errNamesRefused) || errors.Is(err, errForeign) || errors.Is(err, errUnsafe) || errors.Is(err, errUnmade) || unserved(err) ||
		apimeta.IsNoMatchError(err) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) ||
		apierrors.IsRequestEntityTooLargeError(err) || apierrors.IsMethodNotSupported(err)
}

// unserved says whether a catalog answered that it does not have a bundle. Servers
// that give no code mean the same: one that cannot be asked has a code of its own. A
// catalog may get the bundle again.
func unserved(err error) bool {
	var answer interface{ GRPCStatus() *status.Status }
	return errors.As(err, &answer) && slices.Contains([]codes.Code{codes.NotFound, codes.Unknown, codes.InvalidArgument}, answer.GRPCStatus().Code())
}

// passing says whether an error is one of the moment, whatever else is wrong.
func passing(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) ||
		apierrors.IsTimeout(err) || apierrors.IsServerTimeout(err) || apierrors.IsTooManyRequests(err) ||
		apierrors.IsInternalError(err) || apierrors.IsServiceUnavailable(err)
}

// denied reports whether a webhook or a policy denied the object. The refusal may have any code.
func denied(err error) bool { return refusal.OfError(err) == refusal.AdmissionDenied }

// overQuota reports whether a quota of the namespace has no room for the object.
func overQuota(err error) bool {
	return apierrors.IsForbidden(err) && refusal.OfError(err) == refusal.QuotaExceeded
}

// advise says what to do about an error of the API server; account is the one that
// was refused, nil for the supervisor itself.
func advise(err error, account *account) string {
	switch {
	case overQuota(err):
		return "raise the quota or make room in it, and the plan goes on by itself"
	case denied(err):
		return "change the policy that refuses it, or ask for an exception, and the plan goes on by itself"
	case apierrors.IsForbidden(err) && account != nil:
		return fmt.Sprintf("grant ServiceAccount %s that right, or take spec.serviceAccountName out of OperatorGroup %s; the plan goes on by itself", account.name, account.group)
	case apierrors.IsForbidden(err):
		return "the supervisor lacks that right: grant it, and the plan goes on by itself"
	default:
		return ""
	}
}
