package discovery

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// answerTo returns the answer to a request that failed with an error, or succeeded.
func answerTo(err error) Answer {
	var status apierrors.APIStatus
	switch {
	case err == nil:
		return OK
	case errors.As(err, &status):
		return answerOf(int(status.Status().Code))
	case untrusted(err):
		return Untrusted
	case timedOut(err):
		return TimedOut
	}
	return Unconnected
}

func answerOf(code int) Answer {
	switch code {
	case http.StatusUnauthorized:
		return Unauthorized
	case http.StatusForbidden:
		return Denied
	case http.StatusNotFound:
		return NotFound
	case http.StatusTooManyRequests:
		return Throttled
	case http.StatusServiceUnavailable:
		return Unavailable
	}
	return Broken
}

func untrusted(err error) bool {
	var (
		verification *tls.CertificateVerificationError
		record       tls.RecordHeaderError
		alert        tls.AlertError
		authority    x509.UnknownAuthorityError
		host         x509.HostnameError
		invalid      x509.CertificateInvalidError
	)
	return errors.As(err, &verification) || errors.As(err, &record) || errors.As(err, &alert) ||
		errors.As(err, &authority) || errors.As(err, &host) || errors.As(err, &invalid) ||
		errors.Is(err, http.ErrSchemeMismatch)
}

func timedOut(err error) bool {
	var network net.Error
	return errors.Is(err, context.DeadlineExceeded) || (errors.As(err, &network) && network.Timeout())
}
