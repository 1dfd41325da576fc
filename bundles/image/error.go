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

// Reason says what kind of trouble an [Error] is, for those who know the
// remedy.
type Reason string

// The reasons for which an image cannot be used.
const (
	// ReasonReference: the text is no reference to an image.
	ReasonReference Reason = "BadReference"
	// ReasonUnauthorized: the registry wants credentials, or others. Many
	// registries also say so of images that do not exist.
	ReasonUnauthorized Reason = "Unauthorized"
	// ReasonNotFound: the registry does not have it.
	ReasonNotFound Reason = "NotFound"
	// ReasonPlatform: the image is not made for the platform.
	ReasonPlatform Reason = "NoSuchPlatform"
	// ReasonNoTree: the image does not hold the directory that is looked for.
	ReasonNoTree Reason = "NoSuchDirectory"
	// ReasonFormat: the directory is of another format than the one that is
	// looked for.
	ReasonFormat Reason = "OtherFormat"
	// ReasonTooLarge: a limit is exceeded.
	ReasonTooLarge Reason = "TooLarge"
	// ReasonInvalid: the image is damaged or does what images must not do.
	ReasonInvalid Reason = "Invalid"
	// ReasonUntrusted: the registry's certificate is not trusted.
	ReasonUntrusted Reason = "Untrusted"
	// ReasonPlainHTTP: the registry speaks HTTP, which is not allowed.
	ReasonPlainHTTP Reason = "PlainHTTP"
	// ReasonCredentials: the credentials cannot be read.
	ReasonCredentials Reason = "BadCredentials"
	// ReasonUnreachable: the registry cannot be reached or does not do its
	// work; another attempt may succeed.
	ReasonUnreachable Reason = "Unreachable"
	// ReasonLocal: the local file system does not do its work.
	ReasonLocal Reason = "LocalFailure"
)

// Error says which image cannot be used and why.
type Error struct {
	// Reference is the image as it was asked for.
	Reference string
	// Reason is the kind of trouble.
	Reason Reason
	// Err says what happened.
	Err error
}

// Error names the image and what happened.
func (e *Error) Error() string { return fmt.Sprintf("image %q: %v", e.Reference, e.Err) }

// Unwrap returns what happened.
func (e *Error) Unwrap() error { return e.Err }

// MayPass tells whether the same attempt may succeed later although the image
// is the same: when it is about who asks and about the way to the registry.
func (e *Error) MayPass() bool {
	switch e.Reason {
	case ReasonUnreachable, ReasonLocal, ReasonUnauthorized, ReasonNotFound, ReasonUntrusted, ReasonCredentials, ReasonPlainHTTP:
		return true
	default:
		return false
	}
}

// ReasonOf returns the reason of an error, "" when it has none.
func ReasonOf(err error) Reason {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Reason
	}
	if f, ok := errors.AsType[*failure](err); ok {
		return f.reason
	}
	return ""
}

// failure is an error whose reason is known where it happens; it becomes an
// Error once the reference is known.
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

// describe turns whatever went wrong into an Error.
func describe(reference string, err error) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*Error](err); ok {
		return err
	}
	return &Error{Reference: reference, Reason: classify(err), Err: err}
}

// classify finds the reason of an error that may come from the registry client.
func classify(err error) Reason {
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

// isCertificate tells whether the registry's certificate was refused.
func isCertificate(err error) bool {
	verification, _ := errors.AsType[*tls.CertificateVerificationError](err)
	unknown := new(x509.UnknownAuthorityError)
	name := new(x509.HostnameError)
	invalid := new(x509.CertificateInvalidError)
	return verification != nil || errors.As(err, unknown) || errors.As(err, name) || errors.As(err, invalid)
}

// answered is what a registry said instead of doing what it was asked.
type answered struct{ err *transport.Error }

// Error says it without what only those who debug HTTP want to know.
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

// maxAnswer bounds what is repeated of an answer, in bytes.
const maxAnswer = 500

// plain leaves of an error of the registry client what is of use to whoever
// named the image.
func plain(err error) error {
	if certificate, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return certificate
	}
	if f, ok := errors.AsType[*failure](err); ok && f.reason == ReasonPlainHTTP {
		return f
	}
	if answer, ok := errors.AsType[*transport.Error](err); ok {
		return &answered{answer}
	}
	return err
}

// transient tells whether it is worth trying again at once.
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
