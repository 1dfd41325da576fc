// Package refusal classifies why the API server refuses a request.
//
// A Status has a reason (Forbidden, Invalid), but no field for the admission plugin that refuses. Only its
// text distinguishes a quota, a LimitRange, a webhook and a missing permission. The API server's text also arrives
// without its Status, in conditions of Deployments and in Events. This package is the only one that reads it.
package refusal

import (
	"errors"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Reason is why a request was refused; empty when it is none of those that follow.
type Reason string

// Reasons of refusals.
const (
	// QuotaExceeded means that a ResourceQuota has no room for the object.
	QuotaExceeded Reason = "QuotaExceeded"
	// ResourcesRequired means that a ResourceQuota requires containers to have requests or limits.
	ResourcesRequired Reason = "ResourcesRequired"
	// LimitExceeded means that a LimitRange does not allow the resources of a container or pod.
	LimitExceeded Reason = "LimitExceeded"
	// PodSecurityViolated means that the Pod Security Standard of the namespace forbids the pod.
	PodSecurityViolated Reason = "PodSecurityViolated"
	// WebhookUnavailable means that the server of an admission webhook does not answer.
	WebhookUnavailable Reason = "WebhookUnavailable"
	// AdmissionDenied means that an admission webhook or a ValidatingAdmissionPolicy denied the request.
	AdmissionDenied Reason = "AdmissionDenied"
	// ServiceAccountMissing means that the ServiceAccount of a pod does not exist.
	ServiceAccountMissing Reason = "ServiceAccountMissing"
	// NamespaceTerminating means that the namespace of the object is being deleted.
	NamespaceTerminating Reason = "NamespaceTerminating"
	// PermissionDenied means that the user lacks permission to send the request.
	PermissionDenied Reason = "PermissionDenied"
	// EscalationDenied means that the user may not grant permissions that it does not have.
	EscalationDenied Reason = "EscalationDenied"
	// Invalid means that a field of the object has a value that the API does not allow.
	Invalid Reason = "Invalid"
)

// Of returns the reason that the text of a refusal states.
func Of(text string) Reason {
	for _, known := range texts {
		if known.in(text) {
			return known.reason
		}
	}
	return ""
}

// OfError returns the reason of an error of the API server. The type of the error counts before its text.
func OfError(err error) Reason {
	switch {
	case err == nil:
		return ""
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return NamespaceTerminating
	}
	return Of(err.Error())
}

// webhookUnavailable precedes the name of a webhook that does not answer.
const webhookUnavailable = "failed calling webhook "

// texts are the words of each reason. The first that matches counts: what admission refuses may quote any
// other text.
var texts = []struct {
	reason Reason
	in     func(text string) bool
}{
	{ResourcesRequired, all("failed quota", "must specify ")},
	{QuotaExceeded, anyOf("exceeded quota", "failed quota")},
	{LimitExceeded, exceedsLimit},
	{PodSecurityViolated, anyOf("violates PodSecurity")},
	{WebhookUnavailable, anyOf(webhookUnavailable)},
	{AdmissionDenied, all("admission webhook ", " denied the request")},
	{AdmissionDenied, all("ValidatingAdmissionPolicy ", " denied request")},
	{ServiceAccountMissing, anyOf("error looking up service account")},
	{ServiceAccountMissing, all("serviceaccount ", " not found")},
	{NamespaceTerminating, anyOf("because it is being terminated")},
	{EscalationDenied, anyOf("attempting to grant RBAC permissions not currently held")},
	{PermissionDenied, anyOf("is forbidden: User ", "cannot create resource")},
	{Invalid, anyOf(" is invalid: ")},
}

func anyOf(words ...string) func(string) bool {
	return func(text string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(text, w) })
	}
}

func all(words ...string) func(string) bool {
	return func(text string) bool {
		return !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(text, w) })
	}
}

// Webhook returns the name of the webhook that a refusal with the reason WebhookUnavailable is about; empty
// when the text has none.
func Webhook(text string) string {
	_, after, _ := strings.Cut(text, webhookUnavailable)
	name, _, _ := strings.Cut(strings.TrimPrefix(after, `"`), `"`)
	return name
}

// Immutable reports whether a change was refused because only a new object can have the value. Admission
// policies may refuse with the same Status reason, but name no field.
func Immutable(err error) bool {
	status, is := errors.AsType[*apierrors.StatusError](err)
	if !is || !apierrors.IsInvalid(err) || status.ErrStatus.Details == nil {
		return false
	}
	return slices.ContainsFunc(status.ErrStatus.Details.Causes, func(cause metav1.StatusCause) bool {
		return cause.Field != "" && immutable(cause.Message)
	})
}

// immutable holds the words of fields that cannot be changed. A PodDisruptionBudget cannot have both of its
// bounds, not even while one replaces the other.
var immutable = anyOf("immutable", "may not change", "may not be changed", "may not be updated", "cannot be both set")
