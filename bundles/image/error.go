package image

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
)

// Reason is the kind of an [Error], from which callers derive the remedy.
type Reason string

// The reasons why an image cannot be used.
const (
	// ReasonReference: the text is not a reference to an image.
	ReasonReference Reason = "BadReference"
	// ReasonUnauthorized: the registry requires credentials, or other ones. Many registries also
	// answer this for images that do not exist.
	ReasonUnauthorized Reason = "Unauthorized"
	// ReasonNotFound: the registry lacks the image.
	ReasonNotFound Reason = "NotFound"
	// ReasonPlatform: the image is not built for the platform.
	ReasonPlatform Reason = "NoSuchPlatform"
	// ReasonNoTree: the image lacks the requested directory.
	ReasonNoTree Reason = "NoSuchDirectory"
	// ReasonFormat: the directory has another format than the requested one.
	ReasonFormat Reason = "OtherFormat"
	// ReasonTooLarge: a limit is exceeded.
	ReasonTooLarge Reason = "TooLarge"
	// ReasonInvalid: the image is damaged or violates the format.
	ReasonInvalid Reason = "Invalid"
	// ReasonUntrusted: the registry's certificate is not trusted.
	ReasonUntrusted Reason = "Untrusted"
	// ReasonPlainHTTP: the registry uses plain HTTP, which is not allowed.
	ReasonPlainHTTP Reason = "PlainHTTP"
	// ReasonCredentials: the credentials cannot be read.
	ReasonCredentials Reason = "BadCredentials"
	// ReasonUnreachable: the registry is unreachable or fails. Another attempt may succeed.
	ReasonUnreachable Reason = "Unreachable"
	// ReasonBlocked: rules exclude all sources of the image.
	ReasonBlocked Reason = "Blocked"
	// ReasonConfiguration: the rules for the sources of images cannot be read.
	ReasonConfiguration Reason = "BadRegistriesConfiguration"
	// ReasonPolicyRefused: a policy forbids the image, or requires a signature that it lacks. Only other signatures or
	// another policy allow it: no other program may pull it instead.
	ReasonPolicyRefused Reason = "PolicyRefused"
	// ReasonPolicyNotSupported: a policy covers the image that only nodes can apply. They may pull it.
	ReasonPolicyNotSupported Reason = "PolicyNotSupported"
	// ReasonLocal: the local file system fails.
	ReasonLocal Reason = "LocalFailure"
	// ReasonNode: a node could not pull the image for the caller, or not hand it over.
	ReasonNode Reason = "NodePullFailed"
)

// Error is the error of an image that cannot be used.
type Error struct {
	// Reference is the image in the form that the caller passed.
	Reference string
	// Reason is the kind of the error.
	Reason Reason
	// Err is the cause.
	Err error
}

// Error returns the image and the cause.
func (e *Error) Error() string { return fmt.Sprintf("image %q: %v", e.Reference, e.Err) }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// MayPass reports whether the same operation on the same image may succeed later: if the reason
// concerns credentials or the connection to the registry.
func (e *Error) MayPass() bool {
	switch e.Reason {
	case ReasonUnreachable, ReasonLocal, ReasonUnauthorized, ReasonNotFound, ReasonUntrusted, ReasonCredentials, ReasonPlainHTTP,
		ReasonBlocked, ReasonConfiguration, ReasonPolicyRefused, ReasonPolicyNotSupported, ReasonNode:
		return true
	default:
		return false
	}
}

// ReasonOf returns the reason of an error, or "" if it has none.
func ReasonOf(err error) Reason {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Reason
	}
	if f, ok := errors.AsType[*failure](err); ok {
		return f.reason
	}
	return ""
}

// failure is an error with a reason and without a reference. It becomes an Error when the reference is known.
type failure struct {
	reason Reason
	err    error
}

func (f *failure) Error() string { return f.err.Error() }

func (f *failure) Unwrap() error { return f.err }

// fail returns a failure with a formatted text.
func fail(reason Reason, format string, args ...any) error {
	return &failure{reason: reason, err: fmt.Errorf(format, args...)}
}

// describe returns any error as an Error.
func describe(reference string, err error) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*Error](err); ok {
		return err
	}
	return &Error{Reference: reference, Reason: classify(err), Err: err}
}

// classify returns the reason of an error that may come from the registry client.
func classify(err error) Reason {
	if e, ok := errors.AsType[*SourcesError](err); ok {
		return e.reason()
	}
	if isCertificate(err) {
		return ReasonUntrusted
	}
	if f, ok := errors.AsType[*failure](err); ok {
		return f.reason
	}
	if answer, ok := errors.AsType[*transport.Error](err); ok {
		switch answer.StatusCode {
		case http.StatusUnauthorized, http.StatusForbidden:
			return ReasonUnauthorized
		case http.StatusNotFound:
			return ReasonNotFound
		}
	}
	return ReasonUnreachable
}

// isCertificate reports whether the registry's certificate was refused.
func isCertificate(err error) bool {
	verification, _ := errors.AsType[*tls.CertificateVerificationError](err)
	unknown := new(x509.UnknownAuthorityError)
	name := new(x509.HostnameError)
	invalid := new(x509.CertificateInvalidError)
	return verification != nil || errors.As(err, unknown) || errors.As(err, name) || errors.As(err, invalid)
}

// answered is an error answer of a registry.
type answered struct{ err *transport.Error }

// Error returns the text without HTTP details.
func (a *answered) Error() string {
	var text strings.Builder
	fmt.Fprintf(&text, "the registry answers %d %s", a.err.StatusCode, http.StatusText(a.err.StatusCode))
	for i := range a.err.Errors {
		fmt.Fprintf(&text, ", %s: %s", a.err.Errors[i].Code, a.err.Errors[i].Message)
	}
	return clipTo(text.String(), maxAnswer)
}

// Unwrap returns the error of the registry client.
func (a *answered) Unwrap() error { return a.err }

// unverified is a certificate that is not trusted.
type unverified struct {
	err *tls.CertificateVerificationError
}

// Error names the issuer if it is unknown: the issuer of a proxy's certificates is the proxy.
func (u *unverified) Error() string {
	text := u.err.Error()
	if unknown := new(x509.UnknownAuthorityError); errors.As(u.err, unknown) && len(u.err.UnverifiedCertificates) > 0 {
		text += fmt.Sprintf("; its issuer is %q", clipTo(u.err.UnverifiedCertificates[0].Issuer.String(), maxAnswer))
	}
	return text
}

// Unwrap returns the error of the verification.
func (u *unverified) Unwrap() error { return u.err }

// maxAnswer is the largest part of an answer that a message repeats, in bytes.
const maxAnswer = 500

// plain removes details from an error of the registry client that do not help users.
func plain(err error) error {
	if proxy, ok := errors.AsType[*proxyError](err); ok {
		return proxy
	}
	if certificate, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return &unverified{certificate}
	}
	if f, ok := errors.AsType[*failure](err); ok && (f.reason == ReasonPlainHTTP || f.reason == ReasonUnauthorized) {
		return f
	}
	if answer, ok := errors.AsType[*transport.Error](err); ok {
		return &answered{answer}
	}
	return err
}

// transient reports whether an immediate retry may succeed.
func transient(err error) bool {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return false
	}
	if answer, ok := errors.AsType[*transport.Error](err); ok {
		return answer.StatusCode == http.StatusRequestTimeout || answer.StatusCode == http.StatusTooManyRequests ||
			answer.StatusCode >= http.StatusInternalServerError
	}
	return classify(err) == ReasonUnreachable
}
