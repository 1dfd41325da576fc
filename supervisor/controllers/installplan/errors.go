package installplan

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chandlery/chandlery/bundles/image"
	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/api/olmtext"
	"github.com/chandlery/chandlery/supervisor/apiserver/refusal"
	"github.com/chandlery/chandlery/supervisor/crd/upgradesafety"
	"github.com/chandlery/chandlery/supervisor/plansteps"
)

// stepError reports that a step could not be applied.
type stepError struct {
	step *operatorsv1alpha1.Step
	err  error
	// remedy is the remedy; empty when the error states it. It is not in the text of the error.
	remedy string
	// effect is what the plan did not do because of the error; empty if that is clear.
	effect string
}

// Error returns the message of the plan: the step, why it failed, and the effect.
func (e *stepError) Error() string {
	if missing, is := errors.AsType[*missingKindError](e.err); is {
		return missing.Error()
	}
	r := e.step.Resource
	if apimeta.IsNoMatchError(e.err) {
		return olmtext.APINotServed(r.Group, r.Version, r.Kind, r.Name)
	}
	subject := fmt.Sprintf("error applying %s %s", r.Kind, r.Name)
	if e.step.Resolving != "" {
		subject += " of " + e.step.Resolving
	}
	text := strings.TrimSuffix(fmt.Sprintf("%s: %v", subject, e.err), ".")
	if e.effect != "" {
		text += "; " + e.effect
	}
	return text
}

// Unwrap returns the cause.
func (e *stepError) Unwrap() error { return e.err }

var (
	// errUnsupported reports that a bundle has an object of a kind that a plan must not contain.
	errUnsupported = errors.New(olmtext.InvalidPlanData + ": bundles cannot contain objects of this kind")
	// errNamesRefused reports that the API server does not serve a CustomResourceDefinition because
	// another one has its names.
	errNamesRefused = errors.New("its names are not accepted")
	// errOwnerDeleted reports that the version that a plan installs was deleted.
	errOwnerDeleted = errors.New("the ClusterServiceVersion that should own it no longer exists")
	// errOwnerMissing reports that a plan names an owner that it does not install and that does not exist.
	errOwnerMissing = errors.New("the ClusterServiceVersion that should own it does not exist")
	// errOtherOwner reports that an object has another owner.
	errOtherOwner = errors.New("it does not belong to this operator")
	// errUnsafe reports that a CustomResourceDefinition would lose data or make objects invalid.
	errUnsafe = errors.New("the CustomResourceDefinition is not changed")
	// errOwnRead reports that the supervisor could not read an object with its own permissions.
	errOwnRead = errors.New("reading")
	// errSecretMissing reports that a plan refers to a Secret that its user has to create.
	errSecretMissing = errors.New("it must exist before the plan")
)

// Ends of messages of the condition Installed.
const (
	// remedy follows an error that ended the plan, and remedyContent an error of its content.
	remedy        = "; fix the cause; the plan then continues automatically within minutes; to retry at once, delete the InstallPlan"
	remedyContent = "; fix the cause and delete the InstallPlan to try again"
)

// kindError reports that a plan must not contain an object.
type kindError struct{ remedy string }

// Error returns the message with the remedy.
func (e *kindError) Error() string { return errUnsupported.Error() + "; " + e.remedy }

// Unwrap returns errUnsupported.
func (*kindError) Unwrap() error { return errUnsupported }

// definitionVersionError reports that a CustomResourceDefinition is of another API version than v1.
type definitionVersionError struct{ version string }

// Error returns OLM's sentence.
func (e *definitionVersionError) Error() string { return olmtext.CRDVersionUnsupported(e.version) }

// Unwrap returns the error of a missing API for v1beta1, which OLM knows and Kubernetes no longer serves.
func (e *definitionVersionError) Unwrap() error {
	if e.version != "v1beta1" {
		return nil
	}
	return &apimeta.NoKindMatchError{
		GroupKind: schema.GroupKind{Group: groupAPIExtensions, Kind: kindCRD}, SearchedVersions: []string{e.version},
	}
}

// remedy returns what to do about a definition of a version of the operator; csv is empty for none.
func (*definitionVersionError) remedy(csv string) string {
	if csv == "" {
		return "change the manifest of the CustomResourceDefinition to apiextensions.k8s.io/v1"
	}
	return fmt.Sprintf("ask the author of %s for a bundle whose CustomResourceDefinitions are of apiextensions.k8s.io/v1", csv)
}

// isPermanent reports whether an error is in the plan itself, so that no try can succeed.
func isPermanent(err error) bool {
	if refused, ok := errors.AsType[*upgradesafety.RefusalError](err); ok && refused.Permanent() {
		return true
	}
	if unfit, ok := errors.AsType[*image.Error](err); ok && !unfit.MayPass() {
		return true
	}
	if _, ok := errors.AsType[*definitionVersionError](err); ok {
		return true
	}
	return errors.Is(err, errUnsupported) || errors.Is(err, plansteps.ErrManifest) ||
		errors.Is(err, plansteps.ErrContentChanged) || errors.Is(err, plansteps.ErrNoInlineManifests)
}

// causeOf returns the cause of a plan whose step with an index failed.
func causeOf(failed *stepError, index int) *api.Cause {
	cause := &api.Cause{Reason: reasonOf(failed.err), Step: new(index), Remedy: failed.remedy, Final: isPermanent(failed.err)}
	if kind, is := errors.AsType[*kindError](failed.err); is {
		cause.Remedy = kind.remedy
	}
	return cause
}

// reasonOf returns the reason of a cause for the error of a step.
func reasonOf(err error) string {
	if _, refused := errors.AsType[*upgradesafety.RefusalError](err); refused || errors.Is(err, errUnsafe) {
		return api.ReasonDefinitionRefused
	}
	if failed, is := errors.AsType[*image.Error](err); is {
		if failed.Reason == image.ReasonPolicyRefused {
			return api.ReasonPolicyRefused
		}
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
		{errOtherOwner, api.ReasonObjectOwnedByOther},
		{errNamesRefused, api.ReasonObjectOwnedByOther},
		{errSecretMissing, api.ReasonSecretMissing},
		{plansteps.ErrManifest, api.ReasonContentInvalid},
		{plansteps.ErrContentChanged, api.ReasonContentInvalid},
		{plansteps.ErrNoInlineManifests, api.ReasonContentInvalid},
	} {
		if errors.Is(err, known.err) {
			return known.reason
		}
	}
	if apimeta.IsNoMatchError(err) {
		return api.ReasonAPINotFound
	}
	if _, is := errors.AsType[*definitionVersionError](err); is {
		return api.ReasonContentInvalid
	}
	if reason := refusal.OfError(err); reason != "" {
		return string(reason)
	}
	return api.ReasonStepFailed
}

// remedyFor returns the end of the message of a failed plan.
func remedyFor(err *stepError) string {
	switch {
	case err.remedy != "":
		return "; " + err.remedy
	case isPermanent(err):
		return remedyContent
	default:
		return remedy
	}
}

// isUnknownBundle reports whether a catalog answered that it lacks a bundle. Some servers answer so
// without a code; unreachable servers have another code. The catalog may have the bundle later.
func isUnknownBundle(err error) bool {
	var answer interface{ GRPCStatus() *status.Status }
	return errors.As(err, &answer) && slices.Contains([]codes.Code{codes.NotFound, codes.Unknown, codes.InvalidArgument}, answer.GRPCStatus().Code())
}

// isTransient reports whether an error is temporary.
func isTransient(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) ||
		apierrors.IsTimeout(err) || apierrors.IsServerTimeout(err) || apierrors.IsTooManyRequests(err) ||
		apierrors.IsInternalError(err) || apierrors.IsServiceUnavailable(err)
}

// isDenied reports whether a webhook or a policy denied the object. The refusal may have any code.
func isDenied(err error) bool { return refusal.OfError(err) == refusal.AdmissionDenied }

// exceedsQuota reports whether a quota of the namespace has no room for the object.
func exceedsQuota(err error) bool {
	return apierrors.IsForbidden(err) && refusal.OfError(err) == refusal.QuotaExceeded
}

// apiErrorRemedy returns the remedy for an error of the API server; empty when there is none. account is
// the refused account; nil for the supervisor. command grants the supervisor the permission; empty for none.
func apiErrorRemedy(err error, account *account, command string) string {
	switch {
	case exceedsQuota(err):
		return "raise the quota, or delete objects that count against it; the plan then continues automatically"
	case isDenied(err):
		return "change the policy that refuses it, or ask for an exception; the plan then continues automatically"
	case apierrors.IsForbidden(err) && account != nil && account.group.Name == "":
		return fmt.Sprintf("grant ServiceAccount %s, which the status of the plan names, this permission; the plan then continues automatically", account.name)
	case apierrors.IsForbidden(err) && account != nil:
		return fmt.Sprintf("grant ServiceAccount %s this permission, or remove spec.serviceAccountName from OperatorGroup %s; the plan then continues automatically", account.name, account.group)
	case apierrors.IsForbidden(err) && command != "":
		return "grant the supervisor this permission: " + command + "; the plan then continues automatically"
	case apierrors.IsForbidden(err):
		return "grant the supervisor this permission; the plan then continues automatically"
	default:
		return ""
	}
}
